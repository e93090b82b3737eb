"""One segment's walk through a schedule."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ouzel.schedule.speed import SpeedModel


class ScheduleRun(ABC):
    """Decides, frame by frame, when a chunk is due. The caller brings the clock; a run belongs to one thread.

    sizes: frames of every chunk shipped so far. Their sum never exceeds the frames offered and equals them once finished.
    """

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self._shipped = 0
        self._offered = 0
        self._paused_ms = 0.0
        self._finished = False

    @property
    def shipped(self) -> int:
        """Frames shipped so far."""
        return self._shipped

    def offer(self, frames: int, now_ms: float, *, finished: bool = False) -> int:
        """Report that `frames` frames of the segment exist at `now_ms`; returns how many new ones to ship now (0 = none).

        Meant to be called once a frame, and once more with finished=True, which ships whatever is left in one chunk.
        If the count jumps by several frames the answer may exceed the chunk size: a missed boundary holds nothing back.
        A finished offer that returns 0 is where the server sends its empty end marker (contract 3.7).
        Raises ValueError if `frames` goes down or grows after the end.
        """
        if frames < self._offered or (self._finished and frames > self._offered):
            raise ValueError(f"offered {frames} frames after {self._offered}{' and the end' if self._finished else ''}")
        self._offered = frames
        self._finished = self._finished or finished
        new = frames - self._shipped
        if new <= 0:
            return 0
        now = now_ms - self._paused_ms
        count = new if self._finished else min(new, self._due(frames, new, now))
        if count > 0:
            self._shipped += count
            self.sizes.append(count)
            self._record(count, now)
        return count

    def paused(self, ms: float) -> None:
        """Producing stood still for `ms` because the sink was full; that time is not slowness (contract 7)."""
        if ms < 0:
            raise ValueError(f"a pause cannot last {ms} ms")
        self._paused_ms += ms

    def learn(self, speed: SpeedModel) -> None:  # noqa: B027 - most schedules have nothing to learn
        """Take a newer speed estimate while running; only `auto` makes use of it."""

    @abstractmethod
    def _due(self, frames: int, new: int, now: float) -> int:
        """New frames to ship at `now` (ms without pauses), 0 to wait; `new` >= 1 of `frames` are not shipped yet."""

    def _record(self, count: int, now: float) -> None:  # noqa: B027 - nor to remember
        """Called after `count` frames were shipped at `now` (ms without pauses)."""
