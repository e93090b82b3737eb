"""How long work reports on itself: the running step's label and the fraction of the whole work that is done."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""`progress("talker weights", 0.4)`: label of the running step, fraction 0..1 of the whole work. Called often, so cheap."""


def silent(step: str, fraction: float) -> None:
    """The Progress that says nothing."""


def part(progress: Progress, start: float, end: float) -> Progress:
    """A Progress for one piece of the work: its 0..1 becomes start..end of the whole."""

    def scaled(step: str, fraction: float) -> None:
        progress(step, start + (end - start) * min(max(fraction, 0.0), 1.0))

    return scaled
