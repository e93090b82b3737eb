"""Start and cancel at random points, very often, and see that nothing is left and the next utterance is untouched.

    python -m ouzel.bench.soak BUNDLE [--points 1000] [--seed 0]

Prints a JSON report; exit code 1 if anything was found. The comparison is with a fresh process.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ouzel.api import Voice, load
from ouzel.errors import OuzelError

TEXTS = ("Stop me.", "The bird sings beside the running stream.", "One, two, three, four, five. Six, seven, eight.")
PROBE = "The one after it."
PROBE_SEED = 20
PROBE_TOKENS = 12  # frames enough to cross several chunks, few enough for a slow machine
VICTIM_TOKENS = 60  # a text whose model never ends must not make a point last for ever
SCHEDULE = "fixed:1/4"  # fixed: the same cuts every time, so that samples can be compared bit by bit
WARM_UP_SHARE = 0.1
MAX_GROWTH_MB = 5.0
IDLE_TIMEOUT_S = 120.0


@dataclass
class SoakReport:
    """growth_mb: resident memory at the end minus after the first tenth. stop_ms: from `cancel` to nothing being alive."""

    points: int = 0
    probes: int = 0
    growth_mb: float = 0.0
    stop_ms_p50: float = 0.0
    stop_ms_p95: float = 0.0
    problems: list[str] = field(default_factory=list)


def soak(voice: Voice, expected: str, *, points: int = 1000, seed: int = 0, probe_every: int = 20) -> SoakReport:
    """`points` random start and cancel points on `voice`; every `probe_every`-th goes before a probe that must be `expected`."""
    rng = random.Random(seed)
    report = SoakReport()
    threads, files = _threads(), _open_files()
    stops: list[float] = []
    after_warm_up = _resident_mb()
    for point in range(points):
        _start_and_cancel(voice, rng)
        began = time.perf_counter()
        if not voice.engine.wait_idle(IDLE_TIMEOUT_S):
            report.problems.append(f"point {point}: still alive after {IDLE_TIMEOUT_S:g} s: {voice.live()}")
            break
        stops.append((time.perf_counter() - began) * 1000.0)
        report.points += 1
        if point % probe_every == 0:
            report.probes += 1
            if fingerprint(voice) != expected:
                report.problems.append(f"point {point}: the utterance after it differs from one in a fresh process")
        if point == int(points * WARM_UP_SHARE):
            after_warm_up = _resident_mb()
    report.growth_mb = _resident_mb() - after_warm_up
    if report.growth_mb > MAX_GROWTH_MB:
        report.problems.append(f"memory grew by {report.growth_mb:.1f} MB after the warm-up, more than {MAX_GROWTH_MB:g}")
    if not voice.live().empty:
        report.problems.append(f"left alive: {voice.live()}")
    for what, before, now in (("threads", threads, _threads()), ("open files", files, _open_files())):
        if now > before:
            report.problems.append(f"{what}: {before} before, {now} after")
    if stops:
        ordered = sorted(stops)
        report.stop_ms_p50, report.stop_ms_p95 = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)]
    return report


def fingerprint(voice: Voice) -> str:
    """SHA-256 of the probe's samples."""
    samples = voice.say(PROBE, seed=PROBE_SEED, max_new_tokens=PROBE_TOKENS).samples
    return hashlib.sha256(samples.tobytes()).hexdigest()


def _start_and_cancel(voice: Voice, rng: random.Random) -> None:
    """At a random time or after a random number of chunks, from this thread or another, or by just dropping the utterance."""
    victim = voice.start(rng.choice(TEXTS), seed=rng.getrandbits(32), max_new_tokens=VICTIM_TOKENS)
    how = rng.choice(("at once", "after a time", "after chunks", "other thread", "dropped", "twice"))
    if how == "after a time":
        time.sleep(rng.random() * 0.05)
    elif how != "at once":
        for _ in range(rng.randrange(4)):
            next(victim, None)
    if how == "other thread":
        _in_thread(victim.cancel, lambda: next(victim, None))
    elif how != "dropped":
        victim.cancel()
        if how == "twice":
            victim.cancel()


def _in_thread(action: Callable[[], None], meanwhile: Callable[[], object]) -> None:
    thread = threading.Thread(target=action)
    thread.start()
    meanwhile()
    thread.join()


def _threads() -> int:
    return threading.active_count()


def _open_files() -> int:
    """Open descriptors where the system tells, else 0."""
    folder = Path("/proc/self/fd")
    return len(os.listdir(folder)) if folder.is_dir() else 0


def _resident_mb() -> float:
    """Resident memory now; its peak where the system tells no more."""
    gc.collect()
    statm = Path("/proc/self/statm")
    if statm.is_file():
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    import resource  # not on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def _open(bundle: str) -> Voice:
    # Random-weight bundles loop and may be near-silent: here only the ends matter.
    return load(bundle, schedule=SCHEDULE, stuck=False)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ouzel.bench.soak", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("bundle", help="bundle folder or name")
    parser.add_argument("--points", type=int, default=1000, help="start and cancel points (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of points (default: 0)")
    parser.add_argument("--fingerprint", action="store_true", help="only print the probe's hash, made in this fresh process")
    given = parser.parse_args(arguments)
    try:
        with _open(given.bundle) as voice:
            if given.fingerprint:
                print(fingerprint(voice))
                return 0
            command = [sys.executable, "-m", "ouzel.bench.soak", given.bundle, "--fingerprint"]
            fresh = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
            report = soak(voice, fresh, points=given.points, seed=given.seed)
    except OuzelError as error:
        print(f"ouzel.bench.soak: error: {error}", file=sys.stderr)
        return error.exit_code
    print(json.dumps(asdict(report), indent=2))
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
