"""What a device adds to a deploy file: where each stage runs, and how playback is scheduled. A stock server reads neither."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ouzel.errors import ConfigError
from ouzel.pipeline.reader import Reader

SCHEDULES = ("fixed", "ramp", "adaptive", "auto", "full")
_ANY = {"precision": "auto", "device": "cpu"}  # what another runtime starts from: names of one mean nothing to another


@dataclass(frozen=True, slots=True)
class EdgeOptions:
    """Placement of one stage: `edge:` keys runtime, threads, precision, device, predictor.

    runtime: a name from `ouzel.runtimes`, None for the bundle's own choice. threads: 0 lets the runtime choose.
    precision: "auto" takes what the bundle has; otherwise which weights to use, or how to compute, by the runtime's own names.
    predictor: keys of the talker's stage that are others for the code predictor, which otherwise goes where the talker goes.
    """

    runtime: str | None = None
    threads: int = 0
    precision: str = "auto"
    device: str = "cpu"
    predictor: Mapping[str, Any] = field(default_factory=dict)

    def changed(self, given: Mapping[str, Any]) -> EdgeOptions:
        """With the keys that are given. Another runtime starts from its own precision and device, unless these are given too."""
        other = self.runtime is not None and given.get("runtime", self.runtime) != self.runtime
        predictor = {**self.predictor, **given.get("predictor", {})}
        if other and "runtime" not in predictor:
            predictor = {key: value for key, value in predictor.items() if key not in _ANY or key in given.get("predictor", {})}
        values = {**(_ANY if other else {}), **given, "predictor": predictor}
        return replace(self, **values)

    def of_predictor(self) -> EdgeOptions:
        """The placement of the code predictor, where it has a runtime of its own or the talker is where it was asked to be."""
        return replace(self, predictor={}).changed(self.predictor)


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
    predictor = reader.mapping("predictor")
    if predictor is not None:
        predictor.only("edge key of a predictor", [key for key in EDGE_KEYS if key != "predictor"])
        read_edge(predictor)
    return EdgeOptions(
        runtime=reader.text("runtime"),
        threads=reader.integer("threads", 0, minimum=0) or 0,
        precision=reader.text("precision", "auto") or "auto",
        device=reader.text("device", "cpu") or "cpu",
        predictor={key: value for key, value in predictor.data.items() if value is not None} if predictor is not None else {},
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
