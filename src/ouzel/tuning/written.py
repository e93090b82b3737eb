"""A proposal as a deploy file."""

from __future__ import annotations

from typing import Any

import yaml

from ouzel.api.placement import stage_ids
from ouzel.bundle import Bundle
from ouzel.pipeline import PipelineConfig, load_deploy
from ouzel.pipeline.loader import check_document
from ouzel.pipeline.source import find, read_chain
from ouzel.tuning.cells import Finding
from ouzel.tuning.proposal import Proposal


def deploy_text(bundle: Bundle, pipeline: PipelineConfig, proposal: Proposal, title: str) -> str:
    """YAML for `--deploy-config`: what the bundle is spoken with otherwise, and on top of it the proposal. title: a comment."""
    usual = find(pipeline.default_deploy or pipeline.model_type).name
    base = usual if bundle.deploy is None else str(bundle.deploy.resolve())
    talker, predictor, decoder = proposal.stages
    talker_id, decoder_id = stage_ids(load_deploy(base, pipeline=pipeline))
    edge = _edge(talker)
    others = {key: value for key, value in _edge(predictor).items() if edge[key] != value}
    if "runtime" in others:  # another runtime's names for the rest mean nothing there
        others = _edge(predictor)
    if others:
        edge["predictor"] = others
    content: dict[str, Any] = {
        "base_config": base,
        "edge": {"stages": {talker_id: edge, decoder_id: _edge(decoder)}},
        "playback": {"schedule": "auto"},
    }
    connector = _connector(base, talker_id, decoder_id)
    if connector:
        content["connectors"] = {connector: {"extra": {"codec_chunk_frames": proposal.chunk}}}
    body = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=130)
    return "".join(f"# {line}".rstrip() + "\n" for line in title.splitlines()) + body


def _edge(finding: Finding) -> dict[str, Any]:
    cell = finding.cell
    return {"runtime": cell.runtime, "threads": finding.threads, "precision": cell.weights, "device": cell.device}


def _connector(base: str, talker_id: int, decoder_id: int) -> str | None:
    """The name that the base file has for the join of the two stages."""
    for block in read_chain(find(base), check_document).get("stages") or ():
        if block.get("stage_id") == talker_id:
            name = (block.get("output_connectors") or {}).get(f"to_stage_{decoder_id}")
            return str(name) if name is not None else None
    return None
