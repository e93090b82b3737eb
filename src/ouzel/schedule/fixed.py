"""Fixed chunks behind a smaller first one, and the server's choice of that first one by load (contract 3.3, 3.4)."""

from __future__ import annotations

from ouzel.schedule.run import ScheduleRun


def dynamic_initial(chunk_frames: int, active: int, capacity: int) -> int:
    """First chunk by load: one of 2, 4, 8, … below `chunk_frames`, larger as active / capacity grows (contract 3.3)."""
    largest = 1 if chunk_frames <= 2 else 1 << ((chunk_frames - 1).bit_length() - 1)
    steps = [1 << k for k in range(1, largest.bit_length())]
    if not steps:
        return largest
    if capacity <= 0:
        return steps[0]
    # Python's round() halves to even, as the server's does.
    return steps[round(min(active / capacity, 1.0) * (len(steps) - 1))]


class FixedRun(ScheduleRun):
    """Boundaries at first, first + chunk, first + 2 chunk, …; `first` 0 or >= chunk means plain multiples of chunk."""

    def __init__(self, chunk_frames: int, first: int) -> None:
        super().__init__()
        self._chunk = chunk_frames
        self._first = first if 0 < first < chunk_frames else chunk_frames

    def _due(self, frames: int, new: int, now: float) -> int:
        if frames < self._first:
            return 0
        boundary = frames - (frames - self._first) % self._chunk
        return boundary - self.shipped
