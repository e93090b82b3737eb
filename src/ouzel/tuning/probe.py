"""Measures in a process of its own, so that a library that dies takes nothing along and memory is one stage's only.

    python -m ouzel.tuning.probe stage BUNDLE STAGE RUNTIME WEIGHTS DEVICE SECONDS THREADS[,THREADS…]
    python -m ouzel.tuning.probe speech BUNDLE DEPLOY FRAMES

prints one JSON object a line until its standard input ends: for each number of threads the figures, or {"error": …} for what an
OuzelError says.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from ouzel.bundle import Bundle, open_bundle
from ouzel.errors import OuzelError
from ouzel.models.registry import get_family
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.registry import active_runtime
from ouzel.tuning.memory import rss_mb
from ouzel.tuning.timing import Times, time_decoder, time_predictor, time_talker

TEXT = "The parcel came late, but it came at last."


def main(arguments: Sequence[str]) -> int:
    # Ctrl-C reaches every process of a terminal; the one that started this one tells of it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_the_asker, daemon=True).start()
    kind, *rest = arguments
    try:
        for line in stage(*rest) if kind == "stage" else speech(*rest):
            print(json.dumps(line), flush=True)
    except OuzelError as error:
        print(json.dumps({"error": str(error)}), flush=True)
    return 0


def _end_with_the_asker() -> None:
    """Nobody is left to read when standard input ends: the one who asked may have been interrupted before it could say so."""
    while os.read(0, 1):  # not sys.stdin: the interpreter would want its lock at the end
        pass
    os._exit(0)


def stage(path: str, part: str, runtime: str, weights: str, device: str, seconds: str, threads: str) -> Iterator[dict[str, Any]]:
    """{threads, load_s, memory_mb, wall_ms, cpu_ms, once_ms, calls} of one artifact, for each number of threads."""
    bundle = open_bundle(path)
    frontend = get_family(bundle.manifest.family).frontend(bundle)
    artifact = bundle.artifact(part, runtime, weights)
    loader = active_runtime(runtime)
    load = {"talker": loader.load_talker, "predictor": loader.load_predictor, "decoder": loader.load_decoder}[part]
    memory: float | None = None
    for count in map(int, threads.split(",")):
        before, began = rss_mb()[0], time.perf_counter()
        loaded = load(bundle, artifact, StageOptions(count, device=device))
        load_s = time.perf_counter() - began
        times = _times(part, loaded, frontend.hidden_size, frontend.groups, float(seconds))
        if memory is None:  # the next ones find the memory of the first
            memory = max(0.0, rss_mb()[0] - before)
        del loaded
        yield {"threads": count, "load_s": load_s, "memory_mb": memory, **asdict(times)}


def _times(part: str, loaded: Any, hidden: int, groups: int, seconds: float) -> Times:
    if part == "talker":
        return time_talker(loaded, seconds)
    if part == "predictor":
        return time_predictor(loaded, hidden, groups, seconds)
    return time_decoder(loaded, groups, seconds)


def speech(path: str, deploy: str, frames: str) -> Iterator[dict[str, Any]]:
    """{rtf, first_audio_s, frames, memory_mb}: a text spoken with a deploy file, talker and decoder at once as in earnest."""
    from ouzel.api import load

    bundle: Bundle = open_bundle(path)
    # Random weights loop and may be near-silent; only what a frame costs matters here.
    with load(bundle.root, deploy=deploy, stuck=False) as voice:
        metrics = voice.say(TEXT, greedy=True, max_new_tokens=int(frames) + 1).metrics
        memory = rss_mb()[0]
    yield {"rtf": metrics.rtf, "first_audio_s": metrics.ttfa_s, "frames": metrics.frames, "memory_mb": memory}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
