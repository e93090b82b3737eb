"""CPU ms per frame of each stage, Python overhead, first audio and memory of one bundle, one thread a stage."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ouzel.api import load
from ouzel.bench.memory import rss_mb
from ouzel.bench.native import measured
from ouzel.engine import EngineOptions, StuckPolicy

CHUNK = 8  # frames a decode call: the steady size at which the decoder's figure is stated
# 21 tokens with the byte-level tokenizer of random checkpoints: as many as a sentence of 15 words has with the published one.
TEXT = "The parcel came late."


@dataclass(frozen=True, slots=True)
class StageTimes:
    """CPU milliseconds, medians over the repeats; audio is 80 ms a frame.

    talker, predictor, decoder: native CPU per frame. overhead: process CPU per frame that no graph used (sampling, schedule,
    queues, threads). prefill: native CPU of the prompt. first_audio_*: from the request to the first chunk of one frame.
    """

    frames: int
    repeats: int
    talker: float
    predictor: float
    decoder: float
    overhead: float
    prefill: float
    first_audio_cpu: float
    first_audio_wall: float
    rtf_wall: float
    load_s: float
    rss_mb: float
    peak_rss_mb: float

    @property
    def total(self) -> float:
        return self.talker + self.predictor + self.decoder + self.overhead

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "total": self.total}


def measure(bundle: Path, *, frames: int, repeats: int, note: Callable[[str], None]) -> StageTimes:
    """Speak `frames` greedy frames `repeats` times and take medians. The process should have done nothing else before (RSS)."""
    note("loading the bundle")
    began = time.perf_counter()
    # Random weights loop and may be near-silent; only the cost of a frame matters here.
    options = EngineOptions(stuck=StuckPolicy(enabled=False))
    with measured() as native, load(bundle, threads=1, schedule=f"fixed:{CHUNK}/{CHUNK}", options=options) as voice:
        load_s = time.perf_counter() - began
        request: dict[str, Any] = {"greedy": True, "max_new_tokens": frames + 1}
        rows: list[dict[str, float]] = []
        for repeat in range(repeats):
            note(f"{frames} frames, run {repeat + 1} of {repeats}")
            native.take()
            cpu, wall = time.process_time(), time.perf_counter()
            speech = voice.say(TEXT, initial_codec_chunk_frames=0, **request)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            calls = native.take()
            made = speech.metrics.frames
            steps = calls["talker"][1:]
            spent = sum(sum(times) for times in calls.values())
            rows.append(
                {
                    "talker": _per_frame(steps, len(steps)),
                    "predictor": _per_frame(calls["predictor"], made),
                    "decoder": _per_frame(calls["decoder"], made),
                    "overhead": (cpu - spent) * 1000 / made,
                    "prefill": calls["talker"][0] * 1000,
                    "rtf": wall / speech.duration,
                }
            )
        first_cpu, first_wall = [], []
        for repeat in range(repeats):
            note(f"first audio, run {repeat + 1} of {repeats}")
            cpu, wall = time.process_time(), time.perf_counter()
            with voice.start(TEXT, initial_codec_chunk_frames=1, **request) as utterance:
                next(utterance)
                first_cpu.append((time.process_time() - cpu) * 1000)
                first_wall.append((time.perf_counter() - wall) * 1000)
            voice.engine.wait_idle(60)
        now, peak = rss_mb()
    median = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
    return StageTimes(
        frames=frames,
        repeats=repeats,
        talker=median["talker"],
        predictor=median["predictor"],
        decoder=median["decoder"],
        overhead=median["overhead"],
        prefill=median["prefill"],
        first_audio_cpu=statistics.median(first_cpu),
        first_audio_wall=statistics.median(first_wall),
        rtf_wall=median["rtf"],
        load_s=load_s,
        rss_mb=now,
        peak_rss_mb=peak,
    )


def _per_frame(times: list[float], frames: int) -> float:
    return sum(times) * 1000 / frames
