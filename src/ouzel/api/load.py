"""From a bundle and a deploy file to a voice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ouzel.adapters import DecoderAdapter, TalkerAdapter
from ouzel.api.placement import Place, moved, place_stages, stage_ids, with_threads
from ouzel.api.plan import TextOptions
from ouzel.api.reference import References
from ouzel.api.voice import Placement, Voice
from ouzel.bundle import Bundle, open_bundle
from ouzel.bundle.store import resolve_model
from ouzel.engine import Engine, EngineOptions, StuckPolicy
from ouzel.errors import ConfigError
from ouzel.models.registry import get_family
from ouzel.pipeline import DeployConfig, Overrides, PipelineConfig, load_deploy
from ouzel.pipeline.overrides import stage_block
from ouzel.schedule import CONNECTOR_KEYS, ScheduleSpec


def load(
    model: str | Path | None = None,
    *,
    deploy: str | Path | None = None,
    schedule: str | ScheduleSpec | None = None,
    threads: int | None = None,
    talker: Place = None,
    predictor: Place = None,
    decoder: Place = None,
    fallback: bool = False,
    overrides: Overrides | Mapping[int, Mapping[str, Any]] | None = None,
    options: EngineOptions | None = None,
    max_active: int | None = None,
    max_waiting: int | None = None,
    stuck: bool | StuckPolicy | None = None,
    text: TextOptions | None = None,
    warm_up: bool = True,
) -> Voice:
    """Open a bundle and get it ready to speak.

    model: a bundle folder, or the name of one that was pulled or converted; None: $OUZEL_MODEL, else the default one.
    deploy: a deploy YAML or the name of one that comes with ouzel; without one the bundle's own, then the family's. overrides:
    what a command line would change in it, or stage id -> fields. schedule: "auto", "fixed:2/25", "ramp:4,4,8,16,25", "adaptive",
    "full" or a ScheduleSpec, instead of the deploy file's. threads: of every stage, 0 lets the runtime choose. talker, predictor,
    decoder: where a stage runs, instead of the deploy file's word: a runtime's name, or a mapping with some of runtime, threads,
    precision and device; the predictor follows the talker unless it is given a place. fallback: where a place cannot be used,
    warn and use another one; without it that is an error. options: of the engine, instead of the deploy file's high_water_s and
    max_num_seqs; max_active, max_waiting: fields of them, which leave the others to the deploy file. stuck: False switches the
    stuck detector off, which random-weight models need; a StuckPolicy sets its limits.
    text: how texts are cleaned and cut. warm_up: speak a few frames to nobody first.
    Raises BundleError, ConfigError, MissingExtraError.
    """
    bundle = open_bundle(resolve_model(model))
    family = get_family(bundle.manifest.family)
    pipeline = family.pipeline()
    given = overrides if isinstance(overrides, Overrides) or overrides is None else Overrides(stages=overrides)
    places = {"talker": talker, "predictor": predictor, "decoder": decoder}
    config = configure(deploy, bundle.deploy, pipeline, given, threads, places)
    spec = ScheduleSpec.parse(schedule) if isinstance(schedule, str) else schedule or schedule_of(config)
    stage = config.stage(stage_ids(config)[0])
    kept = config.codec_connector(*stage_ids(config)).ref_audio_artifact_cache_max_entries
    frontend = family.frontend(bundle, max_instructions=stage.tts_max_instructions_length)
    loaded = place_stages(bundle, config, fallback=fallback)
    settings = options or engine_options(config)
    bounds: dict[str, Any] = {name: n for name, n in (("max_active", max_active), ("max_waiting", max_waiting)) if n is not None}
    settings = replace(settings, **bounds)
    if stuck is not None:
        settings = replace(settings, stuck=stuck if isinstance(stuck, StuckPolicy) else StuckPolicy(enabled=stuck))
    engine = Engine(loaded.talker, loaded.decoder, schedule=spec, options=settings)
    voice = Voice(
        engine,
        frontend,
        name=bundle.manifest.name,
        path=bundle.root,
        sampling=config.talker_sampling(stage.stage_id),
        seed=stage.sampling.get("seed"),
        text=text,
        gate=config.playback.gate,
        placement=Placement(bundle, config, loaded),
        references=References(bundle, threads=stage.edge.threads, entries=kept),
    )
    if warm_up:
        try:
            voice.warm_up()
        except BaseException:
            voice.close()
            raise
    return voice


def configure(
    deploy: str | Path | None,
    own: Path | None,
    pipeline: PipelineConfig,
    given: Overrides | None,
    threads: int | None,
    places: Mapping[str, Place],
) -> DeployConfig:
    """The deploy file that is named, else the bundle's own, else the pipeline's, with everything that changes it."""
    name = deploy or (given.deploy_config if given is not None else None) or own or pipeline.default_deploy
    if name is None:
        raise ConfigError(f"Pipeline {pipeline.model_type!r} has no deploy file of its own; give one with deploy=.")
    config = load_deploy(name, overrides=given, pipeline=pipeline)
    blocks = given.stages if given is not None else {}
    asked = {key: stage_block("overrides", block).get("edge", {}) for key, block in blocks.items()}
    return moved(with_threads(config, threads), places, asked)


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
    """Talker and decoder where the deploy file places them, without a voice around them."""
    loaded = place_stages(bundle, with_threads(config, threads))
    return loaded.talker, loaded.decoder
