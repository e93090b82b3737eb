"""`python -m ouzel.bench.runtimes`: what a frame costs in every stage of every installed runtime, on random weights of one shape.

Each runtime converts and is measured in processes of its own, so that libraries do not meet, with the interpreter of its own
virtual environment (.venv-NAME) where it has one. One thread a stage; stages alone, one after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from ouzel.bundle import Bundle, open_bundle
from ouzel.bundle.bundle import is_bundle
from ouzel.cli.table import table
from ouzel.conversion import Target, targets
from ouzel.errors import OuzelError
from ouzel.runtimes.registry import get_runtime, runtimes
from ouzel.tuning import Finding, cells_of, measure_cells

FIRST = "onnxruntime"  # has every stage, so that the bundle is whole from the beginning


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ouzel.bench.runtimes", description=__doc__)
    parser.add_argument("--size", choices=("nano", "tiny", "0.6b", "1.7b"), default="0.6b", help="shape (default: %(default)s)")
    parser.add_argument("--runtimes", metavar="NAMES", help="separated by commas (default: all that are installed)")
    parser.add_argument("--weights", metavar="WEIGHTS", help="RUNTIME=NAME,… (default: each runtime's own)")
    parser.add_argument("--decoder", metavar="WEIGHTS", help="likewise")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each measurement (default: %(default)s)")
    parser.add_argument("--work", type=Path, default=Path("build/bench"), help="where checkpoint and bundle are kept")
    parser.add_argument("--venvs", type=Path, default=Path(), help="folder of the .venv-NAME folders (default: this one)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    given = parser.parse_args(arguments)
    try:
        pythons = interpreters(given.venvs)
        names = list(dict.fromkeys([FIRST, *(given.runtimes.split(",") if given.runtimes else pythons)]))
        wanted = targets(names, given.weights, given.decoder)
        bundle, problems = converted(given.work, given.size, wanted, pythons)
        found = measured(bundle, wanted, pythons, given.seconds)
    except OuzelError as error:
        print(f"ouzel.bench.runtimes: error: {error}", file=sys.stderr)
        return error.exit_code
    if given.json:
        print(json.dumps({"findings": [asdict(f) for f in found], "problems": problems}, indent=2))
    else:
        print_table(given.size, found, problems)
    return 1 if problems or any(f.problem for f in found) else 0


def interpreters(venvs: Path) -> dict[str, str]:
    """Runtime -> the Python that has it: this one, else that of .venv-NAME (NAME with - for _ too). Others are left out."""
    found = {}
    for name in runtimes():
        own = [venvs / f".venv-{spelling}" / "bin" / "python" for spelling in dict.fromkeys((name, name.replace("_", "-")))]
        if get_runtime(name).status().available:
            found[name] = sys.executable
        elif there := [path for path in own if path.exists()]:
            found[name] = os.path.abspath(there[0])
    return found


def converted(work: Path, size: str, wanted: Sequence[Target], pythons: Mapping[str, str]) -> tuple[Bundle, dict[str, str]]:
    """(one bundle with the artifacts of all, runtime -> why it could not be converted for)."""
    checkpoint, folder = work / f"{size}-checkpoint", work / f"{size}-runtimes"
    work.mkdir(parents=True, exist_ok=True)
    problems: dict[str, str] = {}
    for target in wanted:
        name = target.runtime.name
        if is_bundle(folder) and _has(open_bundle(folder), target):
            continue
        if not checkpoint.is_dir():
            note(f"writing random weights of the {size} shape")
            module = "ouzel.models.qwen3_tts.random_checkpoint"
            subprocess.run([sys.executable, "-m", module, str(checkpoint), "--size", size], check=True)
        note(f"converting for {name}: {target.label}")
        kinds = (("--weights", target.weights), ("--decoder", target.decoder))
        options = [word for flag, kind in kinds if kind for word in (flag, kind)]
        add = ["--add"] if is_bundle(folder) else []
        command = [pythons.get(name, sys.executable), "-m", "ouzel", "convert", str(checkpoint), str(folder)]
        done = subprocess.run([*command, "--runtime", name, *options, *add, "-q"], stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            problems[name] = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return open_bundle(folder), problems


def measured(bundle: Bundle, wanted: Sequence[Target], pythons: Mapping[str, str], seconds: float) -> list[Finding]:
    """What each artifact that is wanted costs on one thread, by stage."""
    kinds = {(target.runtime.name, stage, kind) for target in wanted for stage, kind in target.artifacts.items()}
    cells, missing = cells_of(bundle, pythons)
    for name, why in missing.items():
        note(f"{name} is left out: {why}")
    chosen = [cell for cell in cells if (cell.runtime, cell.stage, cell.weights) in kinds and cell.device == "cpu"]
    return list(measure_cells(bundle, chosen, [1], seconds=seconds, pythons=pythons, progress=note))


def note(text: str, _fraction: float = 0.0) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def print_table(size: str, found: Sequence[Finding], problems: Mapping[str, str]) -> None:
    print(f"{size} shapes, one thread; milliseconds per frame (80 ms of audio), each stage alone in a process of its own")
    header = ("STAGE", "RUNTIME", "WEIGHTS", "CPU MS", "WALL MS", "ONCE MS", "LOAD S", "MEMORY MB")
    print(table([_row(finding) for finding in found], header))
    print("once: the prompt of 16 rows for a talker, decoding a single frame for a decoder")
    for name, why in problems.items():
        print(f"{name}: {why}")


def _row(finding: Finding) -> tuple[str, ...]:
    cell = finding.cell
    names = (cell.stage, cell.runtime, cell.weights)
    if finding.problem:
        return (*names, finding.problem, "", "", "", "")
    once = f"{finding.once_ms:.1f}" if finding.once_ms else ""
    figures = (f"{finding.cpu_ms:.1f}", f"{finding.wall_ms:.1f}", once, f"{finding.load_s:.1f}", f"{finding.memory_mb:.0f}")
    return (*names, *figures)


def _has(bundle: Bundle, target: Target) -> bool:
    there = {(a.runtime, a.stage, a.weights) for a in bundle.manifest.artifacts}
    return {(target.runtime.name, stage, kind) for stage, kind in target.artifacts.items()} <= there


if __name__ == "__main__":
    sys.exit(main())
