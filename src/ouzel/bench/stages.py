"""CPU ms per frame of each stage, Python overhead, first audio and memory of one bundle, one thread a stage."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from ouzel.adapters import DecoderAdapter
from ouzel.api import Voice, load
from ouzel.bench.native import NativeTime, measured
from ouzel.schedule import ScheduleSpec
from ouzel.tuning.memory import rss_mb

CHUNK = 8  # frames a decode call: the steady size at which the decoder's figure is stated
# 21 tokens with the byte-level tokenizer of random checkpoints: as many as a sentence of 15 words has with the published one.
TEXT = "The parcel came late."


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU milliseconds a frame (80 ms of audio), medians over the repeats.

    talker, predictor, decoder: inside the graphs. overhead: process CPU that no graph used (sampling, schedule, queues, threads).
    """

    talker: float
    predictor: float
    decoder: float
    overhead: float

    @property
    def total(self) -> float:
        return self.talker + self.predictor + self.decoder + self.overhead


@dataclass(frozen=True, slots=True)
class StageTimes:
    """alone: one stage at a time. streaming: talker and decoder on their two threads at once, sharing caches and cores.

    prefill: CPU ms of the prompt. first_audio_*: ms from the request to a first chunk of one frame. rtf: wall / audio, streaming.
    """

    frames: int
    repeats: int
    alone: Costs
    streaming: Costs
    prefill: float
    first_audio_cpu: float
    first_audio_wall: float
    rtf: float
    load_s: float
    rss_mb: float
    peak_rss_mb: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def measure(bundle: Path, *, frames: int, repeats: int, note: Callable[[str], None]) -> StageTimes:
    """Speak `frames` greedy frames `repeats` times each way. The process should have done nothing else before (memory)."""
    note("loading the bundle")
    began = time.perf_counter()
    # Random weights loop and may be near-silent; only the cost of a frame matters here.
    with measured() as native, load(bundle, threads=1, stuck=False) as voice:
        load_s = time.perf_counter() - began
        request: dict[str, Any] = {"greedy": True, "max_new_tokens": frames + 1}
        runs: dict[str, list[dict[str, float]]] = {"alone": [], "streaming": []}
        for repeat in range(repeats):
            note(f"{frames} frames, run {repeat + 1} of {repeats}")
            for way, schedule in (("alone", ScheduleSpec("full")), ("streaming", ScheduleSpec("fixed", CHUNK))):
                voice.engine.schedule = schedule
                runs[way].append(_run(voice, native, request))
            runs["alone"][-1]["decoder"] = _decode(voice.engine.decoder, native, frames)
        first = [_first_audio(voice, request) for _ in range(repeats)]
        now, peak = rss_mb()
    middle = {way: {key: statistics.median(run[key] for run in found) for key in found[0]} for way, found in runs.items()}
    names = [field.name for field in fields(Costs)]
    return StageTimes(
        frames=frames,
        repeats=repeats,
        alone=Costs(**{name: middle["alone"][name] for name in names}),
        streaming=Costs(**{name: middle["streaming"][name] for name in names}),
        prefill=middle["alone"]["prefill"],
        first_audio_cpu=statistics.median(cpu for cpu, _ in first),
        first_audio_wall=statistics.median(wall for _, wall in first),
        rtf=middle["streaming"]["rtf"],
        load_s=load_s,
        rss_mb=now,
        peak_rss_mb=peak,
    )


def _run(voice: Voice, native: NativeTime, request: dict[str, Any]) -> dict[str, float]:
    native.take()
    cpu, wall = time.process_time(), time.perf_counter()
    speech = voice.say(TEXT, initial_codec_chunk_frames=0, **request)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    calls, made = native.take(), speech.metrics.frames
    return {
        "talker": statistics.fmean(calls["talker"][1:]) * 1000,
        "predictor": sum(calls["predictor"]) * 1000 / made,
        "decoder": sum(calls["decoder"]) * 1000 / made,
        "overhead": (cpu - sum(map(sum, calls.values()))) * 1000 / made,
        "prefill": calls["talker"][0] * 1000,
        "rtf": wall / speech.duration,
    }


def _decode(decoder: DecoderAdapter, native: NativeTime, frames: int) -> float:
    """CPU ms a frame of the decoder at chunks of CHUNK frames, with nothing beside it."""
    codes = np.random.default_rng(0).integers(1, 200, (CHUNK, 16))  # within any codebook
    state = decoder.start()
    native.take()
    calls = max(1, frames // CHUNK)
    for _ in range(calls):
        decoder.decode(state, codes)
    return sum(native.take()["decoder"]) * 1000 / (calls * CHUNK)


def _first_audio(voice: Voice, request: dict[str, Any]) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    with voice.start(TEXT, initial_codec_chunk_frames=1, **request) as utterance:
        next(utterance)
        taken = (time.process_time() - cpu) * 1000, (time.perf_counter() - wall) * 1000
    voice.engine.wait_idle(60)
    return taken
