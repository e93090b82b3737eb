"""Stages of a model and how they are joined (contract 2.1): fixed by the family, not by the user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast

from ouzel.errors import ConfigError, choose
from ouzel.plugins import load_target


class ExecutionType(StrEnum):
    """What kind of loop a stage runs."""

    LLM_AR = "llm_ar"
    LLM_GENERATION = "llm_generation"
    DIFFUSION = "diffusion"


@dataclass(frozen=True)
class StageConfig:
    """One stage.

    async_processor: producer hook of a streaming pipeline, called once a step; its presence is what allows async_chunk.
    sync_producer: producer hook of a full-payload pipeline, called once at the end.
    sync_consumer: consumer hook of a full-payload pipeline, sizes this stage's prompt.
    Processors are "module:attr" names, imported on first use (`resolve_processor`).
    sampling_constraints win over the deploy file's sampling parameters, except that stop_token_ids are unioned (contract 1.4).
    """

    id: int
    model_stage: str
    execution: ExecutionType = ExecutionType.LLM_AR
    input_sources: tuple[int, ...] = ()
    final_output: bool = False
    final_output_type: str | None = None
    owns_tokenizer: bool = False
    model_arch: str | None = None
    engine_output_type: str | None = None
    async_processor: str | None = None
    sync_producer: str | None = None
    sync_consumer: str | None = None
    requires_full_payload_input: bool = False
    sampling_constraints: Mapping[str, Any] = field(default_factory=dict)
    tts_args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PipelineConfig:
    """Topology of a model. Raises ConfigError at construction when it cannot work; the message lists every fault."""

    model_type: str
    stages: tuple[StageConfig, ...]
    model_arch: str = ""
    default_deploy: str | None = None
    hf_architectures: tuple[str, ...] = ()
    hf_config_predicate: Callable[[Mapping[str, Any]], bool] | None = None
    diffusers_class_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        faults = self._faults()
        if faults:
            raise ConfigError(f"Pipeline {self.model_type!r} is not valid: {'; '.join(faults)}.")

    def _faults(self) -> list[str]:
        if not self.stages:
            return ["it has no stages"]
        faults = []
        ids = self.stage_ids
        for duplicate in sorted({i for i in ids if ids.count(i) > 1}):
            faults.append(f"stage id {duplicate} is used twice")
        for stage in self.stages:
            for source in stage.input_sources:
                if source == stage.id:
                    faults.append(f"stage {stage.id} takes its own output as input")
                elif source not in ids:
                    faults.append(f"stage {stage.id} takes input from stage {source}, which does not exist")
        if all(stage.input_sources for stage in self.stages):
            faults.append("no stage is an entry (one without input_sources)")
        if not any(stage.final_output for stage in self.stages):
            faults.append("no stage has final_output, so no request would ever finish")
        return faults

    @property
    def stage_ids(self) -> tuple[int, ...]:
        return tuple(stage.id for stage in self.stages)

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """(producer id, consumer id) of every join."""
        return tuple((source, stage.id) for stage in self.stages for source in stage.input_sources)

    def stage(self, stage_id: int) -> StageConfig:
        """The stage with that id. Raises ConfigError naming the ids there are."""
        for stage in self.stages:
            if stage.id == stage_id:
                return stage
        raise choose(f"stage of pipeline {self.model_type!r}", stage_id, self.stage_ids, error=ConfigError)

    def hooks(self, producer: int, consumer: int, *, async_chunk: bool) -> tuple[str | None, str | None]:
        """(producer hook, consumer hook) names of one edge (contract 2.1, hook choice)."""
        source, target = self.stage(producer), self.stage(consumer)
        if async_chunk and source.async_processor:
            return source.async_processor, None
        return source.sync_producer, None if async_chunk else target.sync_consumer


def resolve_processor(name: str) -> Callable[..., Any]:
    """Import a processor given as "module:attr". Raises ConfigError if it cannot be imported or called."""
    found = load_target(name, f"processor {name!r}")
    if not callable(found):
        raise ConfigError(f"The processor {name!r} is a {type(found).__name__}, not something to call.")
    return cast("Callable[..., Any]", found)
