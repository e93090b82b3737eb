"""Chunk schedules: how many codec frames travel to the decoder at a time (contract 3). Pure values without a clock."""

from ouzel.schedule.plan import FRAME_MS, first_chunk, plan_sizes, projected_rtf, smallest_sustained_chunk
from ouzel.schedule.run import ScheduleRun
from ouzel.schedule.spec import CONNECTOR_KEYS, KINDS, ScheduleSpec
from ouzel.schedule.speed import SpeedEstimator, SpeedModel

__all__ = [
    "CONNECTOR_KEYS",
    "FRAME_MS",
    "KINDS",
    "ScheduleRun",
    "ScheduleSpec",
    "SpeedEstimator",
    "SpeedModel",
    "first_chunk",
    "plan_sizes",
    "projected_rtf",
    "smallest_sustained_chunk",
]
