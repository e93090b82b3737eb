"""Smallest gap-free start for this machine, then chunks as large as the buffer allows."""

from __future__ import annotations

from dataclasses import replace

from ouzel.schedule.plan import FRAME_MS, TOLERANCE_MS, first_chunk, smallest_sustained_chunk
from ouzel.schedule.run import ScheduleRun
from ouzel.schedule.speed import SpeedModel

UNKNOWN_FIRST = 2
EWMA_NEW = 0.3


class AutoRun(ScheduleRun):
    """Ships at the last moment that keeps playback alive (the maths: `ouzel.schedule.plan`).

    Start: ship once the frames at hand are a gap-free first chunk for the speed known now. The talker speed is the slower
    of the given model and this run's own measured intervals, so a slow start waits for more instead of starving.
    Playing: with playback taken to start when chunk 0 arrives (offer time + decode cost), ship when one more frame
    would arrive later than the audio before it runs out, margin included, or at chunk_frames.
    Stalled: if the audio has run out whatever is done, playback starts anew, so the start rule decides again.
    Without any speed model: 2 frames first, then each chunk a third larger, or as large as the last if the buffer is thin;
    never smaller, since an unknown cost of a decode call could then eat up the gain.
    Slower than real time without an expected length: chunk_frames throughout, to save decode calls; the gate holds playback.
    """

    def __init__(
        self,
        chunk_frames: int,
        margin_ms: float,
        *,
        speed: SpeedModel | None = None,
        first: int | None = None,
        expected_frames: int | None = None,
    ) -> None:
        super().__init__()
        self._chunk = chunk_frames
        self._margin = margin_ms
        self._speed = speed
        self._first = first
        self._expected = expected_frames
        self._interval: float | None = None
        self._seen: tuple[int, float] | None = None
        self._just_shipped = False
        self._pause = 0.0
        self._play_start: float | None = None
        self._arrival = 0.0

    def learn(self, speed: SpeedModel) -> None:
        self._speed = speed

    def paused(self, ms: float) -> None:
        super().paused(ms)
        self._pause += ms

    def _due(self, frames: int, new: int, now: float) -> int:
        self._measure(frames, now)
        self._settle_pause(now)
        if self._play_start is None:
            enough = new >= (self._start_size() if self._first is None else self._first)
        else:
            runs_out = self._play_start + FRAME_MS * self.shipped
            if self._arrives(now, new) > runs_out + TOLERANCE_MS:
                enough = new >= min(self._start_size(), self._chunk)
            else:
                target, least = self._bounds()
                latest = runs_out - self._margin + TOLERANCE_MS
                enough = new >= target or (new >= least and self._arrives(now + self._frame_ms(), new + 1) > latest)
        return new if enough else 0

    def _record(self, count: int, now: float) -> None:
        self._arrival = self._arrives(now, count)
        before = FRAME_MS * (self.shipped - count)
        start = self._arrival - before
        self._play_start = start if self._play_start is None else max(self._play_start, start)
        self._just_shipped = True

    def _arrives(self, when: float, count: int) -> float:
        """Arrival of a chunk shipped at `when`: after the decode before it, plus its own."""
        return max(self._arrival, when) + (self._speed.decode_ms(count) if self._speed else 0.0)

    def _measure(self, frames: int, now: float) -> None:
        """Learn the talker's interval; the one after a shipped chunk may contain its decode and is left out."""
        if self._seen is not None:
            since = frames - self._seen[0]
            if since <= 0:
                return
            if not self._just_shipped:
                sample = max(0.0, now - self._seen[1]) / since
                self._interval = sample if self._interval is None else EWMA_NEW * sample + (1 - EWMA_NEW) * self._interval
        self._seen = (frames, now)
        self._just_shipped = False

    def _frame_ms(self) -> float:
        return max(self._speed.frame_ms if self._speed else 0.0, self._interval or 0.0)

    def _start_size(self) -> int:
        if self._speed is None:
            return UNKNOWN_FIRST if self._play_start is None else self._growth()
        speed = replace(self._speed, frame_ms=self._frame_ms())
        expected = None if self._expected is None else self._expected - self.shipped
        return first_chunk(speed, self._chunk, self._margin, expected)

    def _bounds(self) -> tuple[int, int]:
        """Chunk size to ship at once, and the least to ship early for when the buffer is thin."""
        if self._speed is None:
            return self._growth(), self.sizes[-1]
        hopeless = self._expected is None and smallest_sustained_chunk(self._speed, self._chunk) is None
        return self._chunk, self._chunk if hopeless else 1

    def _growth(self) -> int:
        last = self.sizes[-1]
        return min(self._chunk, last + max(1, last // 3))

    def _settle_pause(self, now: float) -> None:
        """Playback went on while producing stood still (the clock here does not), but a full sink is not emptied by that:
        at least one chunk's worth of audio is taken to be left."""
        if self._pause and self._play_start is not None:
            floor = now + FRAME_MS * (self._chunk - self.shipped)
            self._play_start = min(self._play_start, max(self._play_start - self._pause, floor))
        self._pause = 0.0
