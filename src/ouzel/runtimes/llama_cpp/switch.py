"""Ends a running computation from another thread, without Python in between.

llama.cpp asks a callback before each operator. A Python callback would take the interpreter's lock every time, thousands of times
a frame. `atoi` of the C library has the right form: it reads our one digit and gives 0, go on, or 1, stop.
"""

from __future__ import annotations

import ctypes as C
from typing import Any


class Switch:
    """`stop()` may come from any thread; `reset()` belongs to the one that computes."""

    def __init__(self) -> None:
        self._digit = C.create_string_buffer(b"0")
        process: Any = C.CDLL(None) if hasattr(C.CDLL(None), "atoi") else C.cdll.msvcrt
        self.callback = C.cast(process.atoi, C.c_void_p)
        self.data = C.cast(self._digit, C.c_void_p)

    def stop(self) -> None:
        self._digit[0] = b"1"

    def reset(self) -> None:
        self._digit[0] = b"0"
