"""How long work reports on itself: a function of the step's name and the fraction of it that is done."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""`progress("talker weights", 0.4)`: the step at work and the fraction of that step done, 0 to 1. Called often; must be cheap."""


def silent(step: str, fraction: float) -> None:
    """The Progress that says nothing."""
