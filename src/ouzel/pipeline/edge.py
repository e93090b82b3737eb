"""What a device adds to a deploy file: where each stage runs, and how playback is scheduled. A stock server reads neither."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ouzel.errors import ConfigError
from ouzel.pipeline.reader import Reader

PRECISIONS = ("auto", "fp32", "fp16", "bf16", "int8", "int4")
SCHEDULES = ("fixed", "ramp", "adaptive", "auto", "full")


@dataclass(frozen=True, slots=True)
class EdgeOptions:
    """Placement of one stage: `edge:` keys runtime, threads, precision, device.

    runtime: a name from `ouzel.runtimes`, None for the bundle's own choice. threads: 0 lets the runtime choose.
    precision: "auto" takes what the bundle has; otherwise which weights to use.
    """

    runtime: str | None = None
    threads: int = 0
    precision: str = "auto"
    device: str = "cpu"


@dataclass(frozen=True, slots=True)
class Playback:
    """`playback:` keys. schedule: None means what the connector's extras say, exactly as at the server.

    high_water_s: seconds of unplayed audio above which the talker pauses. gate: hold the first sample back until the
    projected schedule has no gap.
    """

    schedule: str | None = None
    high_water_s: float = 2.0
    gate: bool = True


EDGE_KEYS = tuple(f.name for f in fields(EdgeOptions))
PLAYBACK_KEYS = tuple(f.name for f in fields(Playback))


def read_edge(reader: Reader) -> EdgeOptions:
    """One stage's `edge` mapping. Unknown keys are an error that names the valid ones."""
    reader.only("edge key", EDGE_KEYS)
    return EdgeOptions(
        runtime=reader.text("runtime"),
        threads=reader.integer("threads", 0, minimum=0) or 0,
        precision=reader.text("precision", "auto", choices=PRECISIONS) or "auto",
        device=reader.text("device", "cpu") or "cpu",
    )


def read_playback(reader: Reader | None) -> Playback:
    """The top-level `playback` mapping. Unknown keys are an error that names the valid ones."""
    if reader is None:
        return Playback()
    reader.only("playback key", PLAYBACK_KEYS)
    return Playback(
        schedule=reader.text("schedule", choices=SCHEDULES),
        high_water_s=reader.number("high_water_s", 2.0, above=0.0),
        gate=reader.boolean("gate", True),
    )


def read_edge_stages(reader: Reader | None) -> dict[int, dict[str, Any]]:
    """The top-level form `edge: {stages: {0: {...}}}`: stage id -> unparsed edge mapping, types already checked."""
    if reader is None:
        return {}
    reader.only("key", ("stages",))
    found: dict[int, dict[str, Any]] = {}
    stages = reader.mapping("stages")
    for key in stages.data if stages is not None else ():
        if not str(key).isascii() or not str(key).isdigit():
            raise ConfigError(f"{reader.where}: {reader.at('stages')} maps stage ids to edge keys; {key!r} is not a stage id.")
        block = stages.mapping(key) if stages is not None else None
        if block is not None:
            read_edge(block)
            found[int(key)] = {**found.get(int(key), {}), **block.data}
    return found
