"""What a voice costs on this machine: first audio, warm and from the start of the process, and the size of its parts."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from ouzel.api import Voice
from ouzel.bundle import Bundle

_TEXT = "The kettle is on."
_REPEATS = 9
_STARTS = 3
# Prints wall seconds since the parent's clock was read and CPU seconds of the process, both at the first chunk.
_PROGRAM = """
import sys, time
import ouzel
with ouzel.load(sys.argv[1], threads=1, warm_up=sys.argv[3] == "warm") as voice:
    with voice.stream(sys.argv[4], seed=7) as utterance:
        next(iter(utterance))
        print(time.time() - float(sys.argv[2]), time.process_time())
"""


@dataclass(frozen=True)
class FirstAudio:
    """Seconds from the request (warm) or from the start of the process (cold, with and without warm-up), medians."""

    warm_cpu: float
    warm_wall: float
    cold_cpu: float
    cold_wall: float
    unwarmed_cpu: float
    unwarmed_wall: float


def first_audio(voice: Voice) -> FirstAudio:
    if voice.path is None:
        raise ValueError("the voice has no folder")
    warm = [_warm(voice) for _ in range(_REPEATS)]
    _cold(voice.path, "warm")  # as after an installation: the modules are compiled, the files were read before
    cold = [_cold(voice.path, "warm") for _ in range(_STARTS)]
    unwarmed = [_cold(voice.path, "no") for _ in range(_STARTS)]
    return FirstAudio(*(statistics.median(column) for runs in (warm, cold, unwarmed) for column in zip(*runs, strict=True)))


def _warm(voice: Voice) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    with voice.start(_TEXT, seed=7) as utterance:
        next(utterance)
        taken = time.process_time() - cpu, time.perf_counter() - wall
    voice.engine.wait_idle(60)
    return taken


def _cold(path: Path, warm_up: str) -> tuple[float, float]:
    command = [sys.executable, "-c", _PROGRAM, str(path), repr(time.time()), warm_up, _TEXT]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    wall, cpu = map(float, done.stdout.split())
    return cpu, wall


def parts(bundle: Bundle) -> dict[str, int]:
    """Bytes of each stage's graphs, of the tables, of the rest; files that two artifacts share count once."""
    owner = {rel: f"{a.stage} ({a.weights})" for a in reversed(bundle.manifest.artifacts) for rel in a.files}
    sizes: dict[str, int] = defaultdict(int)
    for rel, entry in bundle.manifest.files.items():
        sizes[owner.get(rel) or ("tables" if rel.startswith("tables/") else rel)] += entry.size
    return dict(sorted(sizes.items(), key=lambda part: -part[1]))
