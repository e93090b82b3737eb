"""`ouzel doctor`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ouzel.cli.deploy import add_deploy, deploy
from ouzel.cli.options import add_model
from ouzel.cli.progress import ProgressLine
from ouzel.cli.table import size, table
from ouzel.errors import BundleError, OuzelError

if TYPE_CHECKING:
    from ouzel.diagnosis import Speed, StageFinding

HELP = "show what this machine can do and how fast"
DESCRIPTION = """\
Show the machine, the runtimes found (and how to install the others), and for a model: the placement
that is actually used and the milliseconds that each stage takes for one frame of 80 ms, in wall and
CPU time, measured in a few seconds. Exit code 1 when no runtime can be used."""
EPILOG = "Where there is no model, `ouzel doctor` shows the machine and the runtimes."


def add(commands: Any) -> None:
    parser = commands.add_parser("doctor", help=HELP, description=DESCRIPTION, epilog=EPILOG)
    add_model(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    add_deploy(parser.add_argument_group("placement"))
    parser.set_defaults(run=run, parser=parser, stages=[])


def run(args: argparse.Namespace) -> int:
    from ouzel.diagnosis import machine, runtime_findings

    here = machine()
    found = runtime_findings()
    report: dict[str, Any] = {"machine": asdict(here), "runtimes": [asdict(f) for f in found]}
    problem: OuzelError | None = None
    stages: list[StageFinding] = []
    speed: Speed | None = None
    try:
        report["model"], stages, speed = _measure(args)
        report |= {"stages": [asdict(s) for s in stages], "speed": asdict(speed)}
    except OuzelError as error:
        problem = error
        report["problem"] = str(error)
    if args.json:
        print(json.dumps(report, indent=2))
    else:
        _print(report, stages, speed)
    usable = any(f.available for f in found)
    if problem is not None:
        print(f"ouzel: {problem}", file=sys.stderr)
        if args.model is not None or not isinstance(problem, BundleError):
            return problem.exit_code
    return 0 if usable else 1


def _measure(args: argparse.Namespace) -> tuple[dict[str, Any], list[StageFinding], Speed]:
    from ouzel.bundle import open_bundle
    from ouzel.bundle.store import resolve_model
    from ouzel.diagnosis import measure
    from ouzel.models.registry import get_family

    bundle = open_bundle(resolve_model(args.model))
    pipeline = get_family(bundle.manifest.family).pipeline()
    with ProgressLine(quiet=args.quiet) as progress:
        stages, speed = measure(bundle, deploy(args, pipeline, bundle.deploy), progress=progress, fallback=args.fallback)
    facts = {"name": bundle.manifest.name, "path": str(bundle.root), "task": bundle.manifest.task}
    return facts | {"bytes": bundle.manifest.size}, stages, speed


def _print(report: dict[str, Any], stages: list[StageFinding], speed: Speed | None) -> None:
    here = report["machine"]
    memory = size(here["memory_bytes"]) if here["memory_bytes"] else "unknown"
    rows = [(key, str(here[key])) for key in ("system", "cpu", "cores")]
    rows += [("memory", memory), ("python", here["python"]), ("ouzel", here["ouzel"])]
    print(table(rows))
    print()
    print(table([_runtime(f) for f in report["runtimes"]], ("RUNTIME", "", "VERSION", "DEVICES", "OFFERS", "DETAIL")))
    if speed is None:
        return
    print()
    print(table([("model", report["model"]["name"]), ("size", size(report["model"]["bytes"]))]))
    print()
    header = ("STAGE", "RUNTIME", "WEIGHTS", "DEVICE", "THREADS", "WALL MS", "CPU MS", "")
    print(table([_row(stage) for stage in stages], header))
    print()
    print(f"real-time factor {speed.rtf:.2f} (a frame is 80 ms; below 1 is faster than real time)")
    print(_advice(speed))


def _runtime(found: dict[str, Any]) -> tuple[str, ...]:
    state = "found" if found["available"] else "missing"
    return (found["name"], state, found["version"], ", ".join(found["devices"]), _offer(found["offer"]), found["detail"])


def _offer(offer: Mapping[str, tuple[str, ...]]) -> str:
    """Stages with the same weights together: "talker, predictor: int4 int8 fp32; decoder: fp32"."""
    stages: dict[tuple[str, ...], list[str]] = {}
    for stage, weights in offer.items():
        stages.setdefault(weights, []).append(stage)
    return "; ".join(f"{', '.join(names)}: {' '.join(weights)}" for weights, names in stages.items())


def _row(stage: StageFinding) -> tuple[str, ...]:
    threads = str(stage.threads) if stage.threads else "auto"
    times = (f"{stage.wall_ms:.2f}", f"{stage.cpu_ms:.2f}")
    return (stage.stage, stage.runtime, stage.weights, stage.device, threads, *times, stage.note)


def _advice(speed: Speed) -> str:
    if speed.auto_least is None:
        return (
            "Slower than real time: live playback would have gaps, so --play waits until it has none. "
            "Smaller weights (ouzel convert --weights int4) or more --threads may help."
        )
    return (
        f"The auto schedule starts with {speed.auto_first} frames ({speed.auto_first * 80} ms of audio) and has no gaps after it."
    )
