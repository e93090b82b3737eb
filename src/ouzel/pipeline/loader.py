"""Loading a deploy file (contract 1): topology, YAML, platform and command line are merged, checked and typed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ouzel.errors import ConfigError, choose
from ouzel.pipeline import merge, notices, source
from ouzel.pipeline.connector import CodecConnector, ConnectorSpec, read_codec, read_connector
from ouzel.pipeline.deploy import DeployConfig
from ouzel.pipeline.edge import read_edge_stages, read_playback
from ouzel.pipeline.merge import Raw
from ouzel.pipeline.overrides import WHERE, Overrides, stage_block
from ouzel.pipeline.reader import Reader
from ouzel.pipeline.registry import get_pipeline, pipelines
from ouzel.pipeline.stage import StageDeploy, check_stage, read_stage
from ouzel.pipeline.topology import ExecutionType, PipelineConfig

RUNNERS = ("v1", "v2")
_DEFAULT_PIPELINE = "qwen3_tts"


def load_deploy(
    path_or_bare_name: str | Path,
    *,
    platform: str = "cpu",
    overrides: Overrides | None = None,
    pipeline: PipelineConfig | str | None = None,
) -> DeployConfig:
    """Load a deploy file: base_config chain, this file, platforms.<platform>, command line; the later one wins.

    pipeline: the model's; the file's own `pipeline:` key goes first. Without either, the longest pipeline name inside the file
    name counts, then qwen3_tts. Keys that change nothing on a device are named in one INFO record of logger ouzel.pipeline.
    Raises ConfigError for everything that contract 1.5 lists and for values of a wrong type, naming file, key and expected type.
    """
    given = overrides or Overrides()
    path = source.find(path_or_bare_name)
    where = str(path)
    raw = source.read_chain(path, check_document)
    top = Reader(where, raw)
    topology = _topology(top.text("pipeline"), pipeline, path)
    section = _platform(top, platform)
    connectors = {name: read_connector(block) for name, block in _named(top.mapping("connectors"))}
    blocks = _blocks(top, section, given, topology)
    async_chunk = top.boolean("async_chunk", True) if given.async_chunk is None else given.async_chunk
    async_chunk = async_chunk and len(topology.stages) > 1
    stages = tuple(
        _stage(blocks.get(s.id, {"stage_id": s.id}), where, connectors, topology, async_chunk) for s in topology.stages
    )
    _check_async(topology, stages, async_chunk, where)
    wiring = _wiring(topology, [stage for i in blocks for stage in stages if stage.stage_id == i], where)
    deploy = DeployConfig(
        path=path,
        pipeline=topology,
        async_chunk=async_chunk,
        stages=stages,
        connectors=wiring,
        codecs={edge: _codec(where, edge, spec) for edge, spec in wiring.items()},
        playback=read_playback(top.mapping("playback")),
        model_runner=section.text("model_runner") or top.text("model_runner") or "v1",
        ignored={key: value for key, value in raw.items() if key not in notices.USED_TOP_KEYS},
    )
    _check_schedule(deploy)
    for stage in topology.stages:
        if stage.execution is ExecutionType.LLM_AR:
            deploy.talker_sampling(stage.id)
    notices.name_ignored(deploy, connectors)
    return deploy


def check_document(raw: Raw, where: str) -> None:
    """Types of one file before it is merged with others, so that an error names the file at fault."""
    top = Reader(where, raw)
    if "stage_args" in raw:
        raise ConfigError(
            f"{where}: stage_args is the old layout, which vLLM-Omni 0.30 refuses too; list the stages under `stages:`."
        )
    if "async_chunk" in raw and not isinstance(raw["async_chunk"], bool):
        raise top.fault("async_chunk", "true or false", raw["async_chunk"])
    top.text("pipeline")
    top.text("model_runner", choices=RUNNERS)
    _check_stages(top)
    for _, section in _named(top.mapping("platforms")):
        section.text("model_runner", choices=RUNNERS)
        _check_stages(section)
    for _, block in _named(top.mapping("connectors")):
        block.mapping("extra")
        if block.raw("name") is not None:
            read_connector(block)
    read_edge_stages(top.mapping("edge"))
    read_playback(top.mapping("playback"))


def _check_stages(reader: Reader) -> None:
    seen: set[int] = set()
    for block in reader.items("stages"):
        check_stage(block)
        if block.data["stage_id"] in seen:
            raise ConfigError(f"{reader.where}: {reader.at('stages')} has stage_id {block.data['stage_id']} twice.")
        seen.add(block.data["stage_id"])


def _named(reader: Reader | None) -> Iterator[tuple[str, Reader]]:
    """(key, value) of a mapping of mappings; null values are left out."""
    for key in reader.data if reader is not None else ():
        block = reader.mapping(key) if reader is not None else None
        if block is not None:
            yield str(key), block


def _topology(own: str | None, given: PipelineConfig | str | None, path: Path) -> PipelineConfig:
    if own is not None:
        if own not in pipelines():
            raise ConfigError(f"{path}: {choose('pipeline', own, pipelines())}")
        return get_pipeline(own)
    if isinstance(given, PipelineConfig):
        return given
    if given is not None:
        return get_pipeline(given)
    matches = [name for name in pipelines() if name in path.stem]
    return get_pipeline(max(matches, key=len, default=_DEFAULT_PIPELINE))


def _platform(top: Reader, platform: str) -> Reader:
    """The section of the device at hand, empty if there is none. Checks the runner that results (contract 1.1)."""
    name = platform.lower()
    found = {key: block for key, block in _named(top.mapping("platforms"))}
    section = found.get(name, Reader(top.where, {}, f"platforms.{name}"))
    if (section.text("model_runner") or top.text("model_runner")) == "v2" and name in ("npu", "xpu"):
        raise ConfigError(f"{top.where}: model_runner v2 does not exist on {name}; set platforms.{name}.model_runner to v1.")
    return section


def _blocks(top: Reader, section: Reader, given: Overrides, topology: PipelineConfig) -> dict[int, Raw]:
    """Flat stage blocks by id in the file's order: file, then platform, then command line. Stages of no pipeline are named."""
    blocks = {block.data["stage_id"]: merge.flat_stage(block.data) for block in top.items("stages")}
    for over in section.items("stages"):
        stage_id = over.data["stage_id"]
        if stage_id in blocks:
            blocks[stage_id] = merge.platform_stage(blocks[stage_id], over.data)
    for stage_id, edge in read_edge_stages(top.mapping("edge")).items():
        _known(stage_id, topology, top.where)
        block = blocks.setdefault(stage_id, {"stage_id": stage_id})
        block["edge"] = {**edge, **(block.get("edge") or {})}
    for stage_id, over_block in given.stages.items():
        _known(stage_id, topology, WHERE)
        over_block = stage_block(WHERE, over_block)
        check_stage(Reader(WHERE, {"stage_id": stage_id, **over_block}, f"stage {stage_id}"))
        blocks[stage_id] = merge.deep(blocks.get(stage_id, {"stage_id": stage_id}), merge.flat_stage(over_block))
    strange = sorted(set(blocks) - set(topology.stage_ids))
    if strange:
        notices.log.warning("%s: stage %s is not part of pipeline %s and is not used", top.where, strange, topology.model_type)
    return {stage_id: block for stage_id, block in blocks.items() if stage_id not in strange}


def _known(stage_id: int, topology: PipelineConfig, where: str) -> None:
    if stage_id not in topology.stage_ids:
        raise ConfigError(f"{where}: {choose(f'stage of pipeline {topology.model_type!r}', stage_id, topology.stage_ids)}")


def _stage(
    block: Raw, where: str, connectors: Mapping[str, ConnectorSpec], topology: PipelineConfig, async_chunk: bool
) -> StageDeploy:
    constraints = topology.stage(block["stage_id"]).sampling_constraints
    stage = read_stage(Reader(where, block, f"stage {block['stage_id']}"), connectors, constraints)
    for reserved in ("use_v2_model_runner", "supports_native_mrv2_data_plane"):
        if reserved in stage.ignored:
            raise ConfigError(
                f"{where}: stage {stage.stage_id}: {reserved} cannot be set; the server derives it from model_runner."
            )
    return replace(stage, async_chunk=async_chunk and stage.async_chunk)


def _check_async(topology: PipelineConfig, stages: Sequence[StageDeploy], async_chunk: bool, where: str) -> None:
    """Contract 1.5: async_chunk needs a stage that can stream, and both ends of an edge must agree."""
    if async_chunk and topology.edges and not any(stage.async_processor for stage in topology.stages):
        raise ConfigError(
            f"{where}: async_chunk is true, but no stage of pipeline {topology.model_type!r} can stream; set it to false."
        )
    mode = {stage.stage_id: stage.async_chunk for stage in stages}
    for producer, consumer in topology.edges:
        if topology.stage(producer).async_processor and mode[producer] != mode[consumer]:
            raise ConfigError(
                f"{where}: async_chunk differs at the two ends of edge {producer} -> {consumer}. "
                "Set it on both stages, or once for the whole file."
            )


def _wiring(topology: PipelineConfig, stages: Sequence[StageDeploy], where: str) -> dict[tuple[int, int], ConnectorSpec]:
    """Connector of each edge: the first stage in the file that names one decides; the other end must name the same class."""
    found: dict[tuple[int, int], ConnectorSpec] = {}
    for stage in stages:
        ends = [((source_id, stage.stage_id), spec) for source_id, spec in stage.input_connectors.items()]
        ends += [((stage.stage_id, target_id), spec) for target_id, spec in stage.output_connectors.items()]
        for edge, spec in ends:
            if edge not in topology.edges:
                known = ", ".join(f"{a} -> {b}" for a, b in topology.edges) or "none"
                raise ConfigError(f"{where}: stage {stage.stage_id} has a connector for {edge[0]} -> {edge[1]}. Edges: {known}.")
            if found.setdefault(edge, spec).name != spec.name:
                raise ConfigError(
                    f"{where}: edge {edge[0]} -> {edge[1]} is {found[edge].name} at one end and {spec.name} at the other."
                )
    return {edge: found.get(edge, ConnectorSpec()) for edge in topology.edges}


def _codec(where: str, edge: tuple[int, int], spec: ConnectorSpec) -> CodecConnector:
    notes: list[str] = []
    codec = read_codec(Reader(where, spec.extra, f"connector {edge[0]} -> {edge[1]}, extra"), notes)
    for note in notes:
        notices.log.warning("%s: %s", where, note)
    return codec


def _check_schedule(deploy: DeployConfig) -> None:
    if deploy.schedule == "ramp" and not any(codec.codec_chunk_ramp for codec in deploy.codecs.values()):
        raise ConfigError(
            f"{deploy.path}: schedule ramp needs codec_chunk_ramp in the connector's extra, such as [4, 4, 8, 16, 25]."
        )
