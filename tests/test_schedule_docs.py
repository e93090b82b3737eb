"""The table in docs/schedules.md is recomputed, so that it cannot grow old."""

import re
from pathlib import Path

import pytest

from ouzel.schedule import ScheduleSpec, SpeedModel, projected_rtf
from schedule_machine import speak

TEXT = (Path(__file__).parent.parent / "docs" / "schedules.md").read_text()
HEADER, *ROWS = re.findall(r"^\| (?:talker ms a frame|\d+) \|.*$", TEXT, re.M)
CELLS = [[cell.strip() for cell in row.strip("|").split("|")] for row in ROWS]
SCHEDULES = [cell.strip() for cell in HEADER.strip("|").split("|")][3:]


def test_the_table_was_found():
    assert SCHEDULES == ["fixed:1/25", "ramp:4,4,8,16,25", "adaptive", "auto"]
    assert len(CELLS) == 7


@pytest.mark.parametrize("cells", CELLS, ids=lambda cells: f"{cells[0]} ms, {cells[1]}")
def test_the_documented_latencies_are_the_simulated_ones(cells):
    call, frame = map(float, cells[1].split(" + "))
    speed = SpeedModel(float(cells[0]), call, frame)
    assert f"{projected_rtf(speed, 25):.2f}" == cells[2]
    for schedule, documented in zip(SCHEDULES, cells[3:], strict=True):
        run = ScheduleSpec.parse(schedule).start(speed=speed, active=0)
        worst = max(speak(run, speed, 120, serial=True))
        first = speed.chunk_ms(run.sizes[0])
        assert documented == f"{first:.0f} / {first + worst:.0f}", schedule


def test_every_flag_form_in_the_docs_is_read():
    column = "".join(re.findall(r"^\| \w+ \| (`.*?) \|", TEXT, re.M))
    flags = re.findall(r"`(.+?)`", column)
    assert len(flags) == 8
    for flag in flags:
        ScheduleSpec.parse(flag)
