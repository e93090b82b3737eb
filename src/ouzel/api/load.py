"""From a bundle and a deploy file to a voice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ouzel.adapters import DecoderAdapter, TalkerAdapter
from ouzel.api.plan import TextOptions
from ouzel.api.voice import Voice
from ouzel.autoregressive import ArTalker
from ouzel.bundle import Artifact, Bundle, open_bundle
from ouzel.bundle.store import resolve_model
from ouzel.engine import Engine, EngineOptions, StuckPolicy
from ouzel.errors import ConfigError
from ouzel.models.registry import get_family
from ouzel.pipeline import DeployConfig, ExecutionType, Overrides, load_deploy
from ouzel.runtimes.base import Runtime, StageOptions
from ouzel.runtimes.registry import get_runtime
from ouzel.schedule import CONNECTOR_KEYS, ScheduleSpec


def load(
    model: str | Path | None = None,
    *,
    deploy: str | Path | None = None,
    schedule: str | ScheduleSpec | None = None,
    threads: int | None = None,
    overrides: Overrides | Mapping[int, Mapping[str, Any]] | None = None,
    options: EngineOptions | None = None,
    stuck: bool | StuckPolicy | None = None,
    text: TextOptions | None = None,
    warm_up: bool = True,
) -> Voice:
    """Open a bundle and get it ready to speak.

    model: a bundle folder, or the name of one that was pulled or converted; None: $OUZEL_MODEL, else the default one.
    deploy: a deploy YAML or the name of one that comes with ouzel; without one the bundle's own, then the family's. overrides:
    what a command line would change in it, or stage id -> fields. schedule: "auto", "fixed:2/25", "ramp:4,4,8,16,25", "adaptive",
    "full" or a ScheduleSpec, instead of the deploy file's. threads: of every stage, 0 lets the runtime choose. options: of the
    engine, instead of the deploy file's high_water_s and max_num_seqs. stuck: False switches the stuck detector off, which
    random-weight models need; a StuckPolicy sets its limits. text: how texts are cleaned and cut. warm_up: speak a few frames to
    nobody first.
    Raises BundleError, ConfigError, MissingExtraError.
    """
    bundle = open_bundle(resolve_model(model))
    family = get_family(bundle.manifest.family)
    pipeline = family.pipeline()
    given = overrides if isinstance(overrides, Overrides) or overrides is None else Overrides(stages=overrides)
    name = deploy or (given.deploy_config if given is not None else None) or bundle.deploy or pipeline.default_deploy
    if name is None:
        raise ConfigError(f"Family {family.name!r} has no deploy file of its own; give one with deploy=.")
    config = load_deploy(name, overrides=given, pipeline=pipeline)
    spec = ScheduleSpec.parse(schedule) if isinstance(schedule, str) else schedule or schedule_of(config)
    stage = config.stage(stage_ids(config)[0])
    frontend = family.frontend(bundle, max_instructions=stage.tts_max_instructions_length)
    talker, decoder = load_stages(bundle, config, threads)
    settings = options or engine_options(config)
    if stuck is not None:
        settings = replace(settings, stuck=stuck if isinstance(stuck, StuckPolicy) else StuckPolicy(enabled=stuck))
    engine = Engine(talker, decoder, schedule=spec, options=settings)
    voice = Voice(
        engine,
        frontend,
        name=bundle.manifest.name,
        path=bundle.root,
        sampling=config.talker_sampling(stage.stage_id),
        seed=stage.sampling.get("seed"),
        text=text,
        gate=config.playback.gate,
    )
    if warm_up:
        try:
            voice.warm_up()
        except BaseException:
            voice.close()
            raise
    return voice


def stage_ids(config: DeployConfig) -> tuple[int, int]:
    """(talker, decoder): the autoregressive stage and the one whose audio is the result."""
    stages = config.pipeline.stages
    talkers = [s.id for s in stages if s.execution is ExecutionType.LLM_AR]
    decoders = [s.id for s in stages if s.final_output and s.id not in talkers]
    if len(talkers) != 1 or len(decoders) != 1:
        raise ConfigError(f"Pipeline {config.pipeline.model_type!r} is not one talker and one decoder; nothing here can run it.")
    return talkers[0], decoders[0]


def schedule_of(config: DeployConfig) -> ScheduleSpec:
    """The schedule that a deploy file asks for."""
    codec = config.codec_connector(*stage_ids(config))
    kind = config.schedule
    if kind == "full":
        return ScheduleSpec("full")
    if kind == "auto":
        return ScheduleSpec("auto", chunk_frames=codec.codec_chunk_frames, safety_margin_ms=codec.codec_chunk_safety_margin_ms)
    keys = {key: getattr(codec, key) for key in CONNECTOR_KEYS}
    keys["codec_chunk_adaptive"] = kind == "adaptive"
    if kind != "ramp":
        keys["codec_chunk_ramp"] = None
    return ScheduleSpec.from_connector(**keys)


def engine_options(config: DeployConfig) -> EngineOptions:
    """The engine's defaults with what a deploy file says about them."""
    capacity = config.stage(stage_ids(config)[0]).max_num_seqs
    found = EngineOptions(high_water_s=config.playback.high_water_s)
    return found if capacity is None else replace(found, max_num_seqs=capacity)


def load_stages(bundle: Bundle, config: DeployConfig, threads: int | None = None) -> tuple[TalkerAdapter, DecoderAdapter]:
    """Both stages on the runtimes that the deploy file places them on."""
    talker_id, decoder_id = stage_ids(config)
    runtime, artifact, options = _placed(bundle, config, talker_id, "talker", threads)
    core = runtime.load_talker(bundle, artifact, options)
    runtime, artifact, options = _placed(bundle, config, talker_id, "predictor", threads)
    predictor = runtime.load_predictor(bundle, artifact, options)
    runtime, artifact, options = _placed(bundle, config, decoder_id, "decoder", threads)
    decoder = runtime.load_decoder(bundle, artifact, options)
    tables = bundle.array("tables/codec.npy"), bundle.array("tables/residual.npy")
    talker = ArTalker(core, predictor, *tables, context=config.stage(talker_id).max_model_len)
    return talker, decoder


def _placed(
    bundle: Bundle, config: DeployConfig, stage_id: int, part: str, threads: int | None
) -> tuple[Runtime, Artifact, StageOptions]:
    """The deploy file decides; what it leaves open, the bundle's own placement does."""
    edge, own = config.stage(stage_id).edge, bundle.manifest.placement.get(part, {})
    name = edge.runtime or own.get("runtime")
    weights: str | None = edge.precision
    if weights == "auto":
        weights = own.get("weights") if name == own.get("runtime") else None
    artifact = bundle.artifact(part, name, weights)
    count = edge.threads if threads is None else threads
    return get_runtime(artifact.runtime), artifact, StageOptions(threads=count, precision=edge.precision, device=edge.device)
