"""A progress line on stderr: redrawn in a terminal, one line a step elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

_WIDTH = 24
_REDRAW_S = 0.1


class ProgressLine:
    """A `Progress` to call with (step, fraction); leaving its `with` block ends the line. quiet: say nothing."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._quiet = quiet
        self._clock = clock
        self._step = ""
        self._drawn = float("-inf")
        self._open = False

    def __call__(self, step: str, fraction: float) -> None:
        if self._quiet:
            return
        fraction = min(max(fraction, 0.0), 1.0)
        new = step != self._step
        if not self._terminal:
            if new:
                print(f"{fraction:4.0%} {step}", file=self._stream, flush=True)
            self._step = step
            return
        now = self._clock()
        if new or fraction >= 1.0 or now - self._drawn >= _REDRAW_S:
            full = round(_WIDTH * fraction)
            bar = "#" * full + "-" * (_WIDTH - full)
            self._stream.write(f"\r\x1b[K[{bar}] {fraction:4.0%} {step}")
            self._stream.flush()
            self._step, self._drawn, self._open = step, now, True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._open:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._open = False
