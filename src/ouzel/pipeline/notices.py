"""One line that names what a deploy file holds and a device does not use: nothing is ignored without a word."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Mapping

from ouzel.pipeline.connector import CODEC_KEYS, ConnectorSpec
from ouzel.pipeline.deploy import DeployConfig
from ouzel.pipeline.sampling import TALKER_KEYS
from ouzel.pipeline.stage import SERVER_STAGE_KEYS, USED_STAGE_KEYS
from ouzel.pipeline.topology import ExecutionType

log = logging.getLogger("ouzel.pipeline")

USED_TOP_KEYS = ("async_chunk", "stages", "connectors", "platforms", "pipeline", "base_config", "edge", "playback")
SERVER_TOP_KEYS = frozenset(
    {
        *(
            "model_runner",
            "session_mode",
            "active_stream_window",
            "duplex_session",
            "edges",
            "forced_aligner",
            "custom_voice_dir",
        ),
        *("trust_remote_code", "distributed_executor_backend", "dtype", "quantization", "enable_prefix_caching"),
        *("enable_chunked_prefill", "data_parallel_size", "pipeline_parallel_size"),
    }
)
SERVER_EXTRA_KEYS = frozenset(
    {
        *("codec_streaming", "connector_get_sleep_s", "connector_get_max_wait", "connector_get_max_wait_first_chunk"),
        *("decode_batch_max_size", "decode_cudagraph_capture_sizes", "decode_cudagraph_batch_sizes", "decode_enable_tf32"),
        *("code_predictor_prefix_graphs", "code_predictor_prefix_graph_buckets", "code_predictor_prefix_graph_seq_lens"),
    }
)


def name_ignored(deploy: DeployConfig, connectors: Mapping[str, ConnectorSpec]) -> None:
    """Log at INFO, in one record, each key that is not used: first what only a server uses, then what nobody knows."""
    report = _Report()
    report.sort("", deploy.ignored, SERVER_TOP_KEYS, USED_TOP_KEYS)
    for name, spec in connectors.items():
        report.sort(f"connectors.{name}.extra.", spec.extra, SERVER_EXTRA_KEYS, CODEC_KEYS)
    for stage in deploy.stages:
        topology = deploy.pipeline.stage(stage.stage_id)
        report.sort(f"stage {stage.stage_id}: ", stage.ignored, SERVER_STAGE_KEYS, USED_STAGE_KEYS)
        if stage.silence_ban_frames:  # the set of silent ids is found with the codec's encoder, which a device does not load
            report.server.add("silence_ban_frames")
        if topology.execution is ExecutionType.LLM_AR:
            own = set(stage.sampling) - set(topology.sampling_constraints)
            report.sort(f"stage {stage.stage_id}: default_sampling_params.", own, frozenset({"detokenize"}), TALKER_KEYS)
    parts = [f"no meaning on a device: {', '.join(sorted(report.server))}"] if report.server else []
    parts += [f"not known here: {', '.join(report.unknown)}"] if report.unknown else []
    if parts:
        log.info("%s: not used: %s", deploy.path, "; ".join(parts))


class _Report:
    """server: key names, each once. unknown: with their place and the nearest key that exists."""

    def __init__(self) -> None:
        self.server: set[str] = set()
        self.unknown: list[str] = []

    def sort(self, place: str, keys: Iterable[str], known: frozenset[str], used: tuple[str, ...]) -> None:
        for key in sorted({str(key) for key in keys} - set(used)):
            if key in known:
                self.server.add(key)
                continue
            near = difflib.get_close_matches(key, used, n=1)
            self.unknown.append(f"{place}{key}" + (f" (did you mean {near[0]}?)" if near else ""))
