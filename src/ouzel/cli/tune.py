"""`ouzel tune`."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ouzel.cli.options import add_model, positive_int
from ouzel.cli.progress import ProgressLine
from ouzel.cli.table import table
from ouzel.errors import OuzelError, UsageError

if TYPE_CHECKING:
    from ouzel.tuning import Finding, Proposal, Trial

HELP = "find out where each stage of a model runs best on this machine"
DESCRIPTION = """\
Measure what the model holds on every installed runtime and device with several numbers of threads,
choose where each stage should run, try the choice out, and write it as a deploy file. Takes from
some seconds to a few minutes; nothing is written when it is interrupted. What a frame of 80 ms
costs is printed as a table; the choice is marked with an asterisk.

examples:
  ouzel tune my-voice
  ouzel tune my-voice -o here.yaml
  ouzel say "Good morning." -m my-voice --deploy here.yaml"""


def add(commands: Any) -> None:
    parser = commands.add_parser("tune", help=HELP, description=DESCRIPTION)
    parser.add_argument("bundle", metavar="BUNDLE", nargs="?", help="the model, as for -m")
    add_model(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write the deploy file (default: print it)")
    parser.add_argument("--threads", metavar="N,N,…", help="numbers of threads to try (default: 1, 2, 4, … up to the cores)")
    parser.add_argument("--seconds", type=float, default=0.5, metavar="X", help="for each measurement (default: %(default)s)")
    parser.add_argument(
        "--frames", type=positive_int, default=50, metavar="N", help="to try the choice out (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    from ouzel import tuning
    from ouzel.bundle import open_bundle
    from ouzel.bundle.store import resolve_model
    from ouzel.diagnosis import machine
    from ouzel.models.registry import get_family
    from ouzel.tuning.cells import cores, thread_counts

    threads = thread_counts(cores()) if args.threads is None else _numbers(args.threads)
    _check(args)
    bundle = open_bundle(resolve_model(args.bundle or args.model))
    pipeline = get_family(bundle.manifest.family).pipeline()
    cells, missing = tuning.cells_of(bundle)
    with ProgressLine(quiet=args.quiet) as progress:
        measuring = tuning.measure_cells(bundle, cells, threads, seconds=args.seconds, progress=lambda s, f: progress(s, 0.9 * f))
        findings = list(measuring)
        proposal = tuning.propose(findings, cores())
        title = f"Where {bundle.manifest.name} runs best on {machine().cpu} ({cores()} cores), found by `ouzel tune`."
        text = tuning.deploy_text(bundle, pipeline, proposal, title)
        with tempfile.TemporaryDirectory() as folder:
            deploy = Path(folder) / "tuned.yaml"
            deploy.write_text(text, encoding="utf-8")
            progress("trying the choice out", 0.9)
            trial: Trial | str
            try:
                trial = tuning.try_out(bundle, deploy, frames=args.frames)
            except OuzelError as error:  # a model that needs a recording, say: what was measured stands all the same
                trial = str(error)
        progress("done", 1.0)
    if args.json:
        facts: dict[str, Any] = {"bundle": str(bundle.root), "missing": missing, "findings": [asdict(f) for f in findings]}
        facts |= {"proposal": asdict(proposal), "trial": trial if isinstance(trial, str) else asdict(trial), "deploy": text}
        print(json.dumps(facts, indent=2))
    else:
        _print(findings, missing, proposal, trial)
    if args.output is not None:
        _write(args.output, text)
    if not args.json:
        print()
        print(args.output if args.output is not None else text.rstrip())
    return 0


def _numbers(text: str) -> tuple[int, ...]:
    numbers = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 0 < int(part) < 1000 for part in numbers):
        raise UsageError(f"--threads {text!r} must be whole numbers from 1 on, separated by commas, such as 1,2,4.")
    return tuple(sorted({int(part) for part in numbers}))


def _check(args: argparse.Namespace) -> None:
    """Say before minutes of measuring what would be wrong at their end."""
    if args.bundle is not None and args.model is not None:
        raise UsageError("The model is given twice; leave -m out or name it there only.")
    if not 0 < args.seconds < 3600:
        raise UsageError(f"--seconds must be a positive number of seconds, not {args.seconds:g}.")
    if args.output is not None and not os.path.isdir(os.path.dirname(args.output) or "."):
        raise UsageError(f"-o {args.output}: there is no folder {os.path.dirname(args.output)}.")
    if args.output is not None and os.path.isdir(args.output):
        raise UsageError(f"-o {args.output} is a folder; give a file name such as here.yaml.")


def _write(place: str, text: str) -> None:
    from ouzel.unfinished import Unfinished

    try:
        with Unfinished.beside(Path(place)) as written:
            written.path.write_text(text, encoding="utf-8")
            written.become(Path(place))
    except OSError as error:
        raise OuzelError(f"Cannot write {place} ({error.strerror or error}).") from error


def _print(findings: Sequence[Finding], missing: dict[str, str], proposal: Proposal, trial: Trial | str) -> None:
    header = ("", "STAGE", "RUNTIME", "WEIGHTS", "DEVICE", "THREADS", "WALL MS", "CPU MS", "LOAD S", "MEMORY MB")
    print(table([_row(f, f in proposal.stages) for f in findings], header))
    for name, why in missing.items():
        print(f"{name}: {why}")
    print()
    print(f"real-time factor {proposal.rtf:.2f}, projected (below 1 is faster than real time)")
    if isinstance(trial, str):
        print(f"not tried out: {trial}")
    else:
        print(f"real-time factor {trial.rtf:.2f}, measured over {trial.frames} frames")
        print(f"first audio after {trial.first_audio_s * 1000:.0f} ms, {trial.memory_mb:.0f} MB resident")
    if proposal.sustained:
        print(f"auto schedule: a first chunk of {proposal.first} frames, then up to {proposal.chunk}")
    else:
        print(f"slower than real time: chunks of {proposal.chunk} frames, and playback waits until it has no gaps")


def _row(finding: Finding, chosen: bool) -> tuple[str, ...]:
    cell = finding.cell
    names = ("*" if chosen else "", cell.stage, cell.runtime, cell.weights, cell.device)
    if finding.problem:
        return (*names, "", finding.problem, "", "", "")
    times = (f"{finding.wall_ms:.2f}", f"{finding.cpu_ms:.2f}", f"{finding.load_s:.2f}", f"{finding.memory_mb:.0f}")
    return (*names, str(finding.threads), *times)
