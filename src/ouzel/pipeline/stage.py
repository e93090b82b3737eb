"""The deploy block of one stage (contract 1.2): what of it matters on a device, typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ouzel.errors import ConfigError
from ouzel.pipeline import merge
from ouzel.pipeline.connector import ConnectorSpec, read_connector
from ouzel.pipeline.edge import EdgeOptions, read_edge
from ouzel.pipeline.reader import Reader

USED_STAGE_KEYS = (
    "stage_id",
    "async_chunk",
    "output_connectors",
    "input_connectors",
    "default_sampling_params",
    "subtalker_sampling_params",
    "silence_ban_frames",
    "max_num_seqs",
    "max_model_len",
    "tts_max_instructions_length",
    "edge",
)
"""Stage keys that change something on a device."""

SERVER_STAGE_KEYS = frozenset(
    {
        *("devices", "num_replicas", "env", "runtime", "engine_args", "engine_extras", "default_pooling_params"),
        *("max_num_batched_tokens", "dtype", "quantization", "enforce_eager", "async_scheduling", "gpu_memory_utilization"),
        *("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "enable_expert_parallel"),
        *("distributed_executor_backend", "enable_prefix_caching", "enable_chunked_prefill", "trust_remote_code"),
        *("disable_hybrid_kv_cache_manager", "mm_processor_cache_gb", "mamba_ssm_cache_dtype", "kv_cache_dtype", "block_size"),
        *("compilation_config", "profiler_config", "skip_mm_profiling", "enable_flashinfer_autotune", "attention_backend"),
        *("config_format", "load_format", "tokenizer_mode", "hf_overrides", "seed", "swap_space", "additional_config"),
    }
)
"""Stage keys that a server reads and that have no meaning on a device."""


@dataclass(frozen=True)
class StageDeploy:
    """One stage as deployed.

    async_chunk: the resolved mode of this stage. sampling: default_sampling_params with the pipeline's constraints merged in.
    output_connectors: consumer stage id -> connector; input_connectors: producer stage id -> connector.
    max_num_seqs: capacity in the dynamic initial chunk rule (contract 3.3); max_model_len: prompt rows + frames of an utterance.
    ignored: stage keys found that change nothing here.
    """

    stage_id: int
    async_chunk: bool = False
    sampling: Mapping[str, Any] = field(default_factory=dict)
    subtalker_sampling: Mapping[str, Any] = field(default_factory=dict)
    output_connectors: Mapping[int, ConnectorSpec] = field(default_factory=dict)
    input_connectors: Mapping[int, ConnectorSpec] = field(default_factory=dict)
    silence_ban_frames: int = 0
    max_num_seqs: int | None = None
    max_model_len: int | None = None
    tts_max_instructions_length: int | None = None
    edge: EdgeOptions = field(default_factory=EdgeOptions)
    ignored: Mapping[str, Any] = field(default_factory=dict)


def stage_id(reader: Reader) -> int:
    """The block's stage_id. Raises ConfigError when it is missing."""
    found = reader.integer("stage_id", minimum=0)
    if found is None:
        raise ConfigError(f"{reader.where}: {reader.at('stage_id')} is missing.")
    return found


def check_stage(reader: Reader) -> None:
    """Types of a stage block as it stands in one file, flat or nested; connector names are not looked up."""
    stage_id(reader)
    for key in ("engine_args", "runtime", "engine_extras", "default_pooling_params"):
        reader.mapping(key)
    read_stage(Reader(reader.where, merge.flat_stage(reader.data), reader.path), None, {})


def read_stage(reader: Reader, connectors: Mapping[str, ConnectorSpec] | None, constraints: Mapping[str, Any]) -> StageDeploy:
    """A flat stage block. `connectors`: the file's connectors by name, or None to leave references unresolved."""
    edge = reader.mapping("edge")
    sampling, subtalker = reader.mapping("default_sampling_params"), reader.mapping("subtalker_sampling_params")
    return StageDeploy(
        stage_id=stage_id(reader),
        async_chunk=reader.boolean("async_chunk", True),
        sampling=_sampling(sampling, constraints),
        subtalker_sampling=dict(subtalker.data) if subtalker is not None else {},
        output_connectors=_wiring(reader, "output_connectors", "to_stage_", connectors),
        input_connectors=_wiring(reader, "input_connectors", "from_stage_", connectors),
        silence_ban_frames=reader.integer("silence_ban_frames", 0, minimum=0) or 0,
        max_num_seqs=reader.integer("max_num_seqs", minimum=1),
        max_model_len=reader.integer("max_model_len", minimum=1),
        tts_max_instructions_length=reader.integer("tts_max_instructions_length", minimum=0),
        edge=read_edge(edge) if edge is not None else EdgeOptions(),
        ignored={key: value for key, value in reader.data.items() if key not in USED_STAGE_KEYS},
    )


def _sampling(reader: Reader | None, constraints: Mapping[str, Any]) -> Mapping[str, Any]:
    if reader is None:
        return merge.sampling(None, constraints)
    ids = reader.raw("stop_token_ids")
    if ids is not None and not (isinstance(ids, list) and all(isinstance(i, int) and not isinstance(i, bool) for i in ids)):
        raise reader.fault("stop_token_ids", "a list of whole numbers", ids)
    return merge.sampling(reader.data, constraints)


def _wiring(reader: Reader, key: str, prefix: str, connectors: Mapping[str, ConnectorSpec] | None) -> dict[int, ConnectorSpec]:
    """`output_connectors` / `input_connectors`: each entry names a connector of the file or defines one in place."""
    block = reader.mapping(key)
    found: dict[int, ConnectorSpec] = {}
    for name in block.keys() if block is not None else ():
        other = name.removeprefix(prefix)
        if block is None or not other.isascii() or not other.isdigit():
            raise ConfigError(f"{reader.where}: {reader.at(key)}.{name} must be called {prefix}<stage id>.")
        value = block.raw(name)
        if isinstance(value, Mapping):
            found[int(other)] = read_connector(Reader(reader.where, value, block.at(name)))
            continue
        reference = block.text(name) or ""
        if connectors is None:
            continue
        if reference not in connectors:
            known = ", ".join(connectors) or "none"
            raise ConfigError(
                f"{reader.where}: {block.at(name)} names connector {reference!r}, which is not defined. Defined: {known}."
            )
        found[int(other)] = connectors[reference]
    return found
