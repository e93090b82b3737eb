"""Sync mode: the whole segment is one chunk (contract 3.9)."""

from __future__ import annotations

from ouzel.schedule.run import ScheduleRun


class FullRun(ScheduleRun):
    """Nothing is due before the end."""

    def _due(self, frames: int, new: int, now: float) -> int:
        return 0
