"""The server's buffer-feedback schedule, rule for rule (contract 3.6)."""

from __future__ import annotations

from dataclasses import dataclass

from ouzel.schedule.plan import FRAME_MS
from ouzel.schedule.run import ScheduleRun

EWMA_NEW = 0.3


@dataclass(frozen=True, slots=True)
class AdaptiveKnobs:
    """codec_chunk_min_frames, _safety_margin_ms, _ramp_divisor and _ramp_delta_min of the connector."""

    min_frames: int
    margin_ms: float
    divisor: int
    delta_min: int


class AdaptiveRun(ScheduleRun):
    """First chunk by load, then as much as the client's buffer can cover, never growing by less than a speed-scaled step."""

    def __init__(self, chunk_frames: int, first: int, knobs: AdaptiveKnobs) -> None:
        super().__init__()
        self._chunk = chunk_frames
        self._first = min(first, chunk_frames)
        self._knobs = knobs
        self._ewma = 0.0
        self._steady = False
        self._target = 0
        self._last_target = 0
        self._first_emit = 0.0
        self._last_emit = 0.0

    def _due(self, frames: int, new: int, now: float) -> int:
        if not self.sizes:
            return new if new >= self._first else 0
        self._target = self._next_target(now)
        return new if new >= self._target else 0

    def _next_target(self, now: float) -> int:
        if self._steady:
            return self._chunk
        knobs, ewma = self._knobs, self._ewma
        buffer = FRAME_MS * self.shipped - (now - self._first_emit)
        if ewma > 0 and buffer >= self._chunk * ewma + knobs.margin_ms:
            self._steady = True
            return self._chunk
        reachable, delta = knobs.min_frames, knobs.delta_min
        if ewma > 0:
            reachable = int(max(0.0, buffer - knobs.margin_ms) / ewma)
            delta = max(delta, int(ewma / knobs.divisor))
        greedy = max(knobs.min_frames, min(reachable, self._chunk))
        return min(self._chunk, max(self._last_target + delta, greedy))

    def _record(self, count: int, now: float) -> None:
        if len(self.sizes) == 1:
            self._first_emit = now
            self._last_target = count
        else:
            sample = (now - self._last_emit) / count
            self._ewma = sample if self._ewma == 0 else EWMA_NEW * sample + (1 - EWMA_NEW) * self._ewma
            self._last_target = self._target
        self._last_emit = now
