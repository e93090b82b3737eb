"""A table of growing chunk sizes, then the chunk size for good (contract 3.5)."""

from __future__ import annotations

from ouzel.schedule.run import ScheduleRun


class RampRun(ScheduleRun):
    """Chunk i ends at the sum of the first i + 1 sizes; whatever has arrived by then is shipped."""

    def __init__(self, ramp: tuple[int, ...], chunk_frames: int) -> None:
        super().__init__()
        self._ramp = ramp
        self._chunk = chunk_frames

    def _due(self, frames: int, new: int, now: float) -> int:
        index = len(self.sizes)
        beyond = max(0, index + 1 - len(self._ramp))
        end = sum(self._ramp[: index + 1]) + beyond * self._chunk
        return new if frames >= end else 0
