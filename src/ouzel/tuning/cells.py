"""Every artifact of a bundle on every device and number of threads, measured one after the other."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ouzel.bundle import Bundle
from ouzel.bundle.progress import Progress, silent
from ouzel.errors import OuzelError, UsageError
from ouzel.runtimes.base import STAGES
from ouzel.runtimes.registry import active_runtime
from ouzel.tuning.child import lines


@dataclass(frozen=True, slots=True)
class Cell:
    """An artifact on a device."""

    stage: str
    runtime: str
    weights: str
    device: str = "cpu"

    def __str__(self) -> str:
        return f"{self.stage}: {self.runtime} {self.weights} on {self.device}"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a cell costs with a number of threads, or, if `problem` is not empty, why that is unknown.

    wall_ms, cpu_ms: of one codec frame of 80 ms, one stage at a time. once_ms: of the prompt, or of decoding a single frame.
    memory_mb: resident memory that came with the stage. calls: decoder only, (frames in a call, its wall ms).
    """

    cell: Cell
    threads: int = 0
    wall_ms: float = 0.0
    cpu_ms: float = 0.0
    once_ms: float = 0.0
    load_s: float = 0.0
    memory_mb: float = 0.0
    calls: tuple[tuple[int, float], ...] = ()
    problem: str = ""


def cores() -> int:
    """Those that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def thread_counts(most: int) -> tuple[int, ...]:
    """1, 2, 4, … and `most` itself."""
    counts = {1 << n for n in range(most.bit_length())}
    return tuple(sorted({n for n in counts if n <= most} | {most}))


def cells_of(bundle: Bundle, pythons: Mapping[str, str] | None = None) -> tuple[list[Cell], dict[str, str]]:
    """(what the bundle holds that can be measured, runtime -> why it cannot be used here).

    pythons: runtime -> an interpreter of its own, which is left to find out by itself. Raises UsageError when nothing remains.
    """
    cells, missing = [], {}
    devices: dict[str, tuple[str, ...]] = dict.fromkeys(pythons or {}, ("cpu",))
    for artifact in bundle.manifest.artifacts:
        name = artifact.runtime
        if artifact.stage not in STAGES or name in missing:
            continue
        if name not in devices:
            try:
                devices[name] = active_runtime(name).status().devices or ("cpu",)
            except OuzelError as error:
                missing[name] = str(error)
                continue
        cells += [Cell(artifact.stage, name, artifact.weights, device) for device in devices[name]]
    lacking = [stage for stage in STAGES if not any(cell.stage == stage for cell in cells)]
    if lacking:
        why = " ".join(missing.values()) or "convert it for a runtime that does"
        raise UsageError(f"No runtime here carries out the {lacking[0]} of bundle {bundle.manifest.name!r}: {why}")
    return sorted(cells, key=lambda cell: STAGES.index(cell.stage)), missing


def measure_cells(
    bundle: Bundle,
    cells: Sequence[Cell],
    threads: Iterable[int],
    *,
    seconds: float = 0.5,
    pythons: Mapping[str, str] | None = None,
    progress: Progress = silent,
) -> Iterator[Finding]:
    """Each cell with each number of threads, for about `seconds` each, in a process of its own for each cell.

    A cell that cannot be loaded, or whose library dies, is a finding with a problem; the others are measured all the same.
    """
    counts = ",".join(map(str, threads))
    for index, cell in enumerate(cells):
        progress(str(cell), index / len(cells))
        python = {"python": pythons[cell.runtime]} if pythons and cell.runtime in pythons else {}
        at = (cell.stage, cell.runtime, cell.weights, cell.device)
        try:
            for found in lines("stage", str(bundle.root), *at, str(seconds), counts, **python):
                yield _finding(cell, found)
        except OuzelError as error:
            yield Finding(cell, problem=str(error))
    progress("measured", 1.0)


def _finding(cell: Cell, found: Mapping[str, Any]) -> Finding:
    calls = tuple((int(size), float(ms)) for size, ms in found["calls"])
    return Finding(cell, **{key: value for key, value in found.items() if key != "calls"}, calls=calls)
