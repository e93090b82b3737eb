"""From the teacher's durations to what the voice learns: where speech starts and ends, durations, tones.

The teacher gives the silence of a pause to the phone before it and half a second to either end; the spectrum tells where
sound is, so a phone ends where it falls silent and the rest is the mark's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ouzel.english.phones import BREAK, MARKS
from ouzel.models.qwen3_tts.prosody import LEAD_MS, TAIL_MS, is_voiced

from .features import FRAME, HOP, REFERENCE_HZ, VOICED_HZ, Array
from .teacher import SAMPLE_RATE, STEP

SILENT = -58.0  # dB of the loudest band; the teacher's pauses are below -70
LEAST_MS = 30.0  # of a phone
PAUSE_MS = 80.0
GAPS = (BREAK, *MARKS)
MS = SAMPLE_RATE / 1000


@dataclass(frozen=True)
class Aligned:
    """start: first sample of codec frame 0; frames: their number; durations (symbols,) ms from LEAD_MS after the start on;
    tones (symbols,) semitones from 150 Hz, NaN where unvoiced."""

    start: int
    frames: int
    durations: Array
    tones: Array


def align(form: Sequence[str], durations: np.ndarray, pitch: Array, spectrum: Array) -> Aligned:
    """durations (symbols + 2,) samples; pitch at 80 Hz; spectrum (n, 64) log envelope at 100 Hz."""
    bounds = np.cumsum(durations)[:-1].astype(np.float64) / MS  # ms where symbol i starts; the last is the end
    loud = spectrum.max(1) * 8.686 > SILENT
    ends = bounds[1:].copy()
    for index, symbol in enumerate(form):
        gap = index + 1 if index + 1 < len(form) and form[index + 1] in GAPS else index
        if symbol in GAPS or (gap == index and index + 1 < len(form)):
            continue  # only what a break, a mark or the end follows may fall silent
        run, silence = _longest_silence(loud, bounds[index] + LEAST_MS, bounds[gap + 1])
        if silence >= PAUSE_MS:
            ends[index] = run
    length = np.diff(np.concatenate([[bounds[0]], ends]))
    start = max(bounds[0] - LEAD_MS, 0.0)
    last = len(form) - 2 if form[-1] in MARKS else len(form) - 1
    frames = int(np.ceil((ends[last] + TAIL_MS - start) * MS / FRAME))
    return Aligned(round(start * MS), frames, np.maximum(length, 0).astype(np.float32), _tones(form, bounds[0], ends, pitch))


def _longest_silence(loud: np.ndarray, low: float, high: float) -> tuple[float, float]:
    """Start and length in ms of the longest silent stretch between two times."""
    step = HOP / MS
    best, begin = (high, 0.0), None
    for at in range(int(low / step), int(high / step) + 1):
        silent = at < int(high / step) and at < len(loud) and not loud[at]
        if silent and begin is None:
            begin = at
        elif not silent and begin is not None:
            if (at - begin) * step > best[1]:
                best = (begin * step, (at - begin) * step)
            begin = None
    return best


def _tones(form: Sequence[str], begin: float, ends: np.ndarray, pitch: Array) -> Array:
    tones = np.full(len(form), np.nan, np.float32)
    for index, symbol in enumerate(form):
        low, high = (begin if index == 0 else ends[index - 1]) * MS / STEP, ends[index] * MS / STEP
        hz = pitch[int(low) : int(np.ceil(high))]
        hz = hz[hz > VOICED_HZ]
        if len(hz) and is_voiced(symbol):
            tones[index] = 12 * np.log2(np.median(hz) / REFERENCE_HZ)
    return tones
