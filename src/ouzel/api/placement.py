"""Which runtime, weights and device carry out each stage of a bundle, and the stages loaded accordingly."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ouzel.adapters import DecoderAdapter, PredictorCore, TalkerCore
from ouzel.autoregressive import ArTalker
from ouzel.bundle import Artifact, Bundle
from ouzel.errors import BundleError, ConfigError, OuzelError, UsageError
from ouzel.pipeline import DeployConfig, EdgeOptions, ExecutionType
from ouzel.pipeline.edge import read_edge
from ouzel.pipeline.reader import Reader
from ouzel.runtimes.base import STAGES, StageOptions
from ouzel.runtimes.registry import active_runtime

log = logging.getLogger("ouzel.api")

Place = str | Mapping[str, Any] | None
"""Where a stage shall run: the name of a runtime, or `edge:` keys (runtime, threads, precision, device); None: as it is."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a stage really runs. threads: 0 = the runtime's choice. instead_of: why it is not where it was asked to be, or ""."""

    stage: str
    runtime: str
    weights: str
    device: str = "cpu"
    threads: int = 0
    precision: str = "auto"
    instead_of: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The three stages, ready, and where they are; `talker` is the adapter made of the first two."""

    core: TalkerCore
    predictor: PredictorCore
    decoder: DecoderAdapter
    talker: ArTalker
    placed: Mapping[str, Placed]


def stage_ids(config: DeployConfig) -> tuple[int, int]:
    """(talker, decoder): the autoregressive stage and the one whose audio is the result."""
    stages = config.pipeline.stages
    talkers = [s.id for s in stages if s.execution is ExecutionType.LLM_AR]
    decoders = [s.id for s in stages if s.final_output and s.id not in talkers]
    if len(talkers) != 1 or len(decoders) != 1:
        raise ConfigError(f"Pipeline {config.pipeline.model_type!r} is not one talker and one decoder; nothing here can run it.")
    return talkers[0], decoders[0]


def moved(
    config: DeployConfig, places: Mapping[str, Place], explicit: Mapping[int, Mapping[str, Any]] | None = None
) -> DeployConfig:
    """The deploy file with stages put elsewhere: "talker", "predictor", "decoder" -> place. Raises ConfigError for bad keys.

    explicit: stage id -> edge keys that hold whatever runtime it becomes (the command line's), where another one would start
    from its own precision and device.
    """
    talker_id, decoder_id = stage_ids(config)
    for part in STAGES:
        place = places.get(part)
        if place is None:
            continue
        keys = {"runtime": place} if isinstance(place, str) else dict(place)
        read_edge(Reader(f"the place of the {part}", keys))
        stage_id = decoder_id if part == "decoder" else talker_id
        if part == "predictor":
            keys = {"predictor": keys}
        else:
            keys = {**(explicit or {}).get(stage_id, {}), **keys}
        config = _with_edge(config, stage_id, config.stage(stage_id).edge.changed(keys))
    return config


def with_threads(config: DeployConfig, threads: int | None) -> DeployConfig:
    """The deploy file with that many threads for every stage; None changes nothing."""
    if threads is None:
        return config
    if threads < 0:
        raise ConfigError(f"threads must be 0 or more, not {threads}.")
    for stage in config.stages:
        own = {key: value for key, value in stage.edge.predictor.items() if key != "threads"}
        config = _with_edge(config, stage.stage_id, replace(stage.edge, threads=threads, predictor=own))
    return config


def _with_edge(config: DeployConfig, stage_id: int, edge: EdgeOptions) -> DeployConfig:
    return replace(config, stages=tuple(replace(s, edge=edge) if s.stage_id == stage_id else s for s in config.stages))


def place_stages(bundle: Bundle, config: DeployConfig, *, fallback: bool = False, keep: Loaded | None = None) -> Loaded:
    """Every stage on the runtime that the deploy file, or else the bundle, places it on.

    fallback: where that one cannot be used, warn and take what can be, the bundle's other artifacts in their order.
    keep: stages that stay where they are in it are taken over, not loaded again.
    Raises MissingExtraError, BundleError, UsageError: what is wrong with the place of a stage, and which others there are.
    """
    talker_id, decoder_id = stage_ids(config)
    edge = config.stage(talker_id).edge
    core, talker_at = _load(bundle, "talker", edge, None, fallback, keep)
    predictor, predictor_at = _load(bundle, "predictor", *_followed(bundle, edge, talker_at), fallback, keep)
    decoder, decoder_at = _load(bundle, "decoder", config.stage(decoder_id).edge, None, fallback, keep)
    placed = {place.stage: place for place in (talker_at, predictor_at, decoder_at)}
    if keep is not None and core is keep.core and predictor is keep.predictor:
        return Loaded(core, predictor, decoder, keep.talker, placed)
    tables = bundle.array("tables/codec.npy"), bundle.array("tables/residual.npy")
    talker = ArTalker(core, predictor, *tables, context=config.stage(talker_id).max_model_len)
    return Loaded(core, predictor, decoder, talker, placed)


def _followed(bundle: Bundle, edge: EdgeOptions, talker: Placed) -> tuple[EdgeOptions, str | None]:
    """(placement, preferred weights) of the predictor: its own, else the talker's, if the bundle has it for that runtime."""
    if edge.predictor.get("runtime") is not None:
        return edge.of_predictor(), None
    have = [a.weights for a in bundle.manifest.artifacts if (a.stage, a.runtime) == ("predictor", talker.runtime)]
    if not have:
        return EdgeOptions(threads=edge.threads).changed(edge.predictor), None
    precision = talker.precision if talker.precision != talker.weights else "auto"  # weights: preferred, not asked for
    there = EdgeOptions(talker.runtime, talker.threads, precision, talker.device)
    return there.changed(edge.predictor), talker.weights if talker.weights in have else None


def _load(
    bundle: Bundle, part: str, edge: EdgeOptions, preferred: str | None, fallback: bool, keep: Loaded | None
) -> tuple[Any, Placed]:
    """The stage where it was asked to be, or with `fallback` on the first artifact that can be used, on the CPU."""
    try:
        return _ready(bundle, *_asked(bundle, part, edge, preferred), keep)
    except OuzelError as error:
        if not fallback:
            raise
        others = [a for a in bundle.manifest.artifacts if a.stage == part]
        for artifact in sorted(others, key=lambda a: a.runtime != edge.runtime):  # another device is nearer than another runtime
            try:
                found, place = _ready(bundle, artifact, StageOptions(edge.threads), keep)
            except OuzelError as other:
                log.debug("no fallback: %s", other)
                continue
            log.warning("%s The %s runs on %s, %s, %s, instead.", error, part, place.runtime, place.weights, place.device)
            return found, replace(place, instead_of=str(error))
        raise


def _asked(bundle: Bundle, part: str, edge: EdgeOptions, preferred: str | None) -> tuple[Artifact, StageOptions]:
    """What the placement names, and where it names nothing what the bundle suggests. BundleError lists what there is."""
    own = bundle.manifest.placement.get(part, {})
    name = edge.runtime or own.get("runtime")
    options = StageOptions(edge.threads, edge.precision, edge.device)
    if edge.precision == "auto":
        weights = preferred or (own.get("weights") if name == own.get("runtime") else None)
        return bundle.artifact(part, name, weights), options
    try:
        return bundle.artifact(part, name, edge.precision), options
    except BundleError:
        if part_has := [a for a in bundle.manifest.artifacts if a.stage == part and name in (None, a.runtime)]:
            return part_has[0], options  # no name of weights, but perhaps a way to compute: the runtime knows
        raise


def _ready(bundle: Bundle, artifact: Artifact, options: StageOptions, keep: Loaded | None) -> tuple[Any, Placed]:
    part = artifact.stage
    place = Placed(part, artifact.runtime, artifact.weights, options.device, options.threads, options.precision)
    if keep is not None and keep.placed[part] == place:
        return {"talker": keep.core, "predictor": keep.predictor, "decoder": keep.decoder}[part], keep.placed[part]
    runtime = active_runtime(artifact.runtime)
    load = {"talker": runtime.load_talker, "predictor": runtime.load_predictor, "decoder": runtime.load_decoder}[part]
    try:
        return load(bundle, artifact, options), place
    except UsageError as error:
        if isinstance(error, BundleError) or options.precision in ("auto", artifact.weights):
            raise
        have = ", ".join(f"{a.runtime} {a.weights}" for a in bundle.manifest.artifacts if a.stage == part)
        raise type(error)(f"{error} The bundle has it for {have}.") from error
