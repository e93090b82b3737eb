"""Command-line overrides of a deploy file (contract 1.4): pure functions from arguments to a value."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ouzel.errors import UsageError, choose
from ouzel.pipeline import merge, source
from ouzel.pipeline.edge import EDGE_KEYS
from ouzel.pipeline.stage import SERVER_STAGE_KEYS, USED_STAGE_KEYS

WHERE = "command line"
_STAGE_FLAG = re.compile(r"--stage[-_](\d+)[-_](.+)")
_FIELDS = tuple(k for k in (*USED_STAGE_KEYS, *sorted(SERVER_STAGE_KEYS)) if k not in ("stage_id", "engine_args", "runtime"))
_EDGE_FIELDS = tuple(f"edge_{key}" for key in EDGE_KEYS)
STAGE_FIELDS = (*_FIELDS, *_EDGE_FIELDS)
"""What `--stage-<id>-<field>` may set: the stage keys of a deploy file, and edge_runtime, edge_threads, …"""


@dataclass(frozen=True)
class Overrides:
    """What the user gave; None and missing entries override nothing. stages: stage id -> flat stage block."""

    deploy_config: str | None = None
    async_chunk: bool | None = None
    stages: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)


def parse_overrides(arguments: Sequence[str]) -> Overrides:
    """Overrides from arguments such as those an argument parser left over.

    --deploy-config NAME, --async-chunk, --no-async-chunk, --stage-<id>-<field> VALUE, --stage-overrides JSON; underscores may
    stand for the dashes and `=` for the space. VALUE is read as a YAML value, so numbers, true/false and {…} work. Where a
    field is given both ways, --stage-overrides wins. Raises UsageError for anything else, naming the valid choices.
    """
    deploy_config: str | None = None
    async_chunk: bool | None = None
    single: dict[int, dict[str, Any]] = {}
    bulk: dict[int, dict[str, Any]] = {}
    rest = list(arguments)
    while rest:
        flag, equals, inline = rest.pop(0).partition("=")
        name = flag.replace("_", "-")
        if name in ("--async-chunk", "--no-async-chunk"):
            if equals:
                raise UsageError(f"{flag} takes no value; use --async-chunk or --no-async-chunk.")
            async_chunk = name == "--async-chunk"
            continue
        match = _STAGE_FLAG.fullmatch(flag)
        if name not in ("--deploy-config", "--stage-overrides") and match is None:
            known = ("--deploy-config", "--async-chunk", "--no-async-chunk", "--stage-overrides", "--stage-<id>-<field>")
            raise choose("option", flag, known)
        if not equals and not rest:
            raise UsageError(f"{flag} needs a value.")
        value = inline if equals else rest.pop(0)
        if name == "--deploy-config":
            deploy_config = value
        elif name == "--stage-overrides":
            for stage, block in parse_stage_overrides(value).items():
                bulk[stage] = merge.deep(bulk.get(stage, {}), block)
        elif match is not None:
            stage = int(match.group(1))
            single[stage] = merge.deep(single.get(stage, {}), stage_block(flag, {match.group(2): source.value(value, flag)}))
    stages = {stage: merge.deep(single.get(stage, {}), bulk.get(stage, {})) for stage in sorted({*single, *bulk})}
    return Overrides(deploy_config, async_chunk, stages)


def parse_stage_overrides(text: str) -> dict[int, dict[str, Any]]:
    """The value of --stage-overrides: a JSON object, stage ids as text -> object of stage fields. null overrides nothing."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--stage-overrides is not valid JSON ({error}): {text[:200]!r}.") from error
    if not isinstance(parsed, dict):
        raise UsageError(f'--stage-overrides must be a JSON object such as {{"0": {{"max_num_seqs": 4}}}}, found {text!r}.')
    found = {}
    for key, block in parsed.items():
        if not (key.isascii() and key.isdigit()):
            raise UsageError(f'--stage-overrides: keys are stage ids such as "0", found {key!r}.')
        if not isinstance(block, dict):
            raise UsageError(f"--stage-overrides: stage {key} must be an object of fields, found {block!r}.")
        found[int(key)] = stage_block("--stage-overrides", block)
    return found


def stage_block(flag: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Flat stage block of field -> value, dashes as underscores, edge_<key> put inside `edge`; None values left out.

    `flag` names the source in errors. Raises UsageError for an unknown field, naming the valid ones.
    """
    block: dict[str, Any] = {}
    for name, value in fields.items():
        plain = name.replace("-", "_")
        if plain not in STAGE_FIELDS:
            raise UsageError(f"{flag}: {choose('stage field', name, STAGE_FIELDS)}")
        if value is None:
            continue
        if plain in _EDGE_FIELDS:
            block = merge.deep(block, {"edge": {plain.removeprefix("edge_"): value}})
        else:
            block = merge.deep(block, {plain: value})
    return block
