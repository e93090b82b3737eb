"""How long one stage takes for a codec frame of 80 ms, on random input."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ouzel.adapters import DecoderAdapter, PredictorCore, SubtalkerSampling, TalkerCore

PROMPT_ROWS = 16  # a short sentence
DECODE_SIZES = (1, 8)  # two lengths tell the cost of a call from the cost of a frame
_WARM_UP = 2
_FEWEST, _MOST = 3, 200  # calls


@dataclass(frozen=True, slots=True)
class Times:
    """Medians in milliseconds: wall and CPU (of all threads) time of one frame.

    once_ms: wall time of the prompt, or of a decode call of one frame. calls: decoder only, (frames in a call, its wall time).
    """

    wall_ms: float
    cpu_ms: float
    once_ms: float = 0.0
    calls: tuple[tuple[int, float], ...] = ()


def time_talker(core: TalkerCore, seconds: float = 0.0) -> Times:
    """Steps behind a prompt of PROMPT_ROWS rows, for about `seconds`, and as often as it takes for a median."""
    rng = np.random.default_rng(0)
    prompt = rng.standard_normal((PROMPT_ROWS, core.hidden_size)).astype(np.float32)
    room = min(PROMPT_ROWS + _MOST + _WARM_UP, core.max_positions)
    state = core.start(room)
    begin = time.perf_counter()
    core.forward(state, prompt)
    prefill = (time.perf_counter() - begin) * 1000
    row = prompt[:1]
    wall, cpu = repeated(lambda: core.forward(state, row), seconds, room - PROMPT_ROWS - _WARM_UP)
    return Times(wall, cpu, prefill)


def time_predictor(predictor: PredictorCore, hidden: int, groups: int, seconds: float = 0.0) -> Times:
    """Whole frames with the default sampling. hidden: of the talker. groups: codes in a frame."""
    rng = np.random.default_rng(0)
    row, uniforms = rng.standard_normal(hidden).astype(np.float32), rng.random(groups - 1)
    return Times(*repeated(lambda: predictor.frame(row, 1, SubtalkerSampling(), uniforms), seconds))


def time_decoder(decoder: DecoderAdapter, groups: int, seconds: float = 0.0) -> Times:
    """A frame in calls of the largest of DECODE_SIZES."""
    state = decoder.start()
    found = {}
    for size in DECODE_SIZES:
        found[size] = repeated(partial(decoder.decode, state, np.ones((size, groups), np.int64)), seconds / len(DECODE_SIZES))
    wall, cpu = (value / DECODE_SIZES[-1] for value in found[DECODE_SIZES[-1]])
    return Times(wall, cpu, found[1][0], tuple((size, times[0]) for size, times in found.items()))


def repeated(work: Callable[[], object], seconds: float, most: int = _MOST) -> tuple[float, float]:
    """Median wall and CPU milliseconds of a call, of at least three and at most `most` calls within about `seconds`."""
    wall: list[float] = []
    cpu: list[float] = []
    for _ in range(_WARM_UP):
        work()
    began = time.perf_counter()
    while len(wall) < min(_FEWEST, most) or (len(wall) < most and time.perf_counter() - began < seconds):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        work()
        wall.append((time.perf_counter() - begin) * 1000)
        cpu.append((time.process_time() - begin_cpu) * 1000)
    return statistics.median(wall), statistics.median(cpu)
