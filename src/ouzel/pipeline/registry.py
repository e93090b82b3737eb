"""Pipelines by model type (contract 2.2): built in, or registered by code outside this package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from ouzel.errors import ConfigError, choose
from ouzel.pipeline.topology import PipelineConfig
from ouzel.plugins import Registry

PipelineResolver = Callable[[Mapping[str, Any] | None], PipelineConfig | None]
"""Gives the pipeline for a parsed config.json (or None), for model types with several topologies."""

_PIPELINES: Registry[PipelineConfig | PipelineResolver] = Registry(
    "pipeline", {"qwen3_tts": "ouzel.models.qwen3_tts.pipeline:PIPELINE"}
)


def pipelines() -> tuple[str, ...]:
    """Every registered model type, sorted; imports none of them."""
    return _PIPELINES.names()


def register_pipeline(pipeline: PipelineConfig | PipelineResolver, model_type: str | None = None) -> None:
    """Make a pipeline known. A resolver needs `model_type`; overwriting a name logs a warning."""
    if model_type is None:
        if not isinstance(pipeline, PipelineConfig):
            raise ConfigError("A pipeline resolver can stand for several pipelines: give the model_type to register it under.")
        model_type = pipeline.model_type
    _PIPELINES.register(model_type, pipeline)


def unregister_pipeline(model_type: str) -> None:
    """Undo `register_pipeline`."""
    _PIPELINES.unregister(model_type)


def get_pipeline(model_type: str, hf_config: Mapping[str, Any] | None = None) -> PipelineConfig:
    """The pipeline registered as `model_type`. Raises ConfigError naming the known ones."""
    if model_type not in pipelines():
        raise choose("pipeline", model_type, pipelines(), error=ConfigError)
    found = _configured(model_type, hf_config)
    if found is None:
        raise ConfigError(f"Pipeline {model_type!r} depends on the checkpoint's config.json, which does not select any variant.")
    return found


def resolve_pipeline(
    *,
    deploy_pipeline: str | None = None,
    hf_config: Mapping[str, Any] | None = None,
    model_index: Mapping[str, Any] | None = None,
    path: str | PurePath = "",
) -> PipelineConfig:
    """Find the pipeline of a model: the first rule that applies decides.

    1. `deploy_pipeline`, the deploy file's `pipeline:` key (unknown: an error). 2. config.json: model_type, or the singular
    "architecture". 3. model_index.json: _class_name. 4. The longest registered name inside the last part of `path`.
    5. config.json: architectures. Rules 3 and 4 are only for checkpoints whose config.json names no type.
    Raises ConfigError that names the known pipelines.
    """
    if deploy_pipeline is not None:
        return get_pipeline(deploy_pipeline, hf_config)
    declared = _declared_type(hf_config)
    name = declared or _by_class_name(model_index, hf_config) or _by_path(path)
    if name in pipelines():
        found = _configured(str(name), hf_config)
        if found is not None:
            return found
    found = _by_architecture(hf_config)
    if found is not None:
        return found
    raise choose("model type", declared or str(path) or "(not given)", pipelines(), error=ConfigError)


def _configured(name: str, hf_config: Mapping[str, Any] | None) -> PipelineConfig | None:
    found = _PIPELINES.get(name)
    return found if isinstance(found, PipelineConfig) else found(hf_config)


def _declared_type(hf_config: Mapping[str, Any] | None) -> str | None:
    for key in ("model_type", "architecture"):
        value = (hf_config or {}).get(key)
        if isinstance(value, str) and value:
            return value
    return None


def _by_class_name(model_index: Mapping[str, Any] | None, hf_config: Mapping[str, Any] | None) -> str | None:
    class_name = (model_index or {}).get("_class_name")
    if class_name is None:
        return None
    for name in pipelines():
        pipeline = _configured(name, hf_config)
        if pipeline is not None and class_name in pipeline.diffusers_class_names:
            return name
    return None


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def _by_path(path: str | PurePath) -> str | None:
    last = _plain(PurePath(path).name)
    matches = [name for name in pipelines() if _plain(name) and _plain(name) in last]
    return max(matches, key=lambda name: len(_plain(name)), default=None)


def _by_architecture(hf_config: Mapping[str, Any] | None) -> PipelineConfig | None:
    architectures = set((hf_config or {}).get("architectures") or ())
    if hf_config is None or not architectures:
        return None
    for name in pipelines():
        pipeline = _configured(name, hf_config)
        if pipeline is None or not architectures.intersection(pipeline.hf_architectures):
            continue
        if pipeline.hf_config_predicate is None or pipeline.hf_config_predicate(hf_config):
            return pipeline
    return None
