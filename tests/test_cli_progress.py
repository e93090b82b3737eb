from __future__ import annotations

import io

import pytest

from ouzel.cli.progress import ProgressLine
from ouzel.cli.table import size, table


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_one_line_a_step_where_there_is_no_terminal():
    stream = io.StringIO()
    with ProgressLine(stream) as progress:
        for step, fraction in (("a", 0.0), ("a", 0.2), ("b", 0.5), ("b", 1.0)):
            progress(step, fraction)
    assert stream.getvalue() == "  0% a\n 50% b\n"


def test_a_terminal_line_is_redrawn_and_wiped():
    stream = Terminal()
    now = [0.0]
    with ProgressLine(stream, clock=lambda: now[0]) as progress:
        progress("a", 0.5)
        now[0] = 0.09
        progress("a", 0.75)  # too soon to be drawn
        now[0] = 0.11
        progress("a", 0.75)
        progress("b", 1.0)
    lines = stream.getvalue().split("\r\x1b[K")
    assert lines == ["", f"[{'#' * 12}{'-' * 12}]  50% a", f"[{'#' * 18}{'-' * 6}]  75% a", f"[{'#' * 24}] 100% b", ""]


def test_quiet_says_nothing():
    quiet = Terminal()
    with ProgressLine(quiet, quiet=True) as progress:
        progress("a", 0.5)
    assert quiet.getvalue() == ""


def test_an_error_wipes_the_line():
    def work(progress: ProgressLine) -> None:
        progress("a", 2.0)
        raise RuntimeError

    stream = Terminal()
    with pytest.raises(RuntimeError), ProgressLine(stream) as progress:
        work(progress)
    assert stream.getvalue() == f"\r\x1b[K[{'#' * 24}] 100% a\r\x1b[K"


def test_tables_line_up_and_sizes_read_well():
    assert table([("a", "1"), ("long", "22")], ("N", "V")) == "N     V\na     1\nlong  22"
    assert table([]) == ""
    assert [size(n) for n in (0, 999, 1000, 5_200_000, 1_234_000_000)] == ["0 B", "999 B", "1.0 KB", "5.2 MB", "1.23 GB"]
