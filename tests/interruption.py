"""An exception at every point where a signal handler could raise one, one point after the other."""

from __future__ import annotations

import gc
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, FunctionType

PACKAGE = Path(__file__).parents[1] / "src" / "ouzel"


class Interruption(BaseException):
    """Stands for KeyboardInterrupt and for the SystemExit of SIGTERM."""


def interrupted_everywhere(work: FunctionType, *modules: str) -> Iterator[int]:
    """Call `work` again and again; the n-th call is ended by an Interruption before the n-th bytecode instruction.

    Yields n after each call but the last, which comes to its end. modules: files of the package whose instructions are counted,
    together with those of `work`; what else they call counts as one. Without any, all Python code counts, the library's too.
    Instructions are finer than where a real signal handler can run, but contain all of it: also the point where a file has been
    opened and is in no variable yet.
    """
    files = (work.__code__.co_filename, *(str(PACKAGE / name) for name in modules)) if modules else ("",)
    before = sys.gettrace()
    gc.collect()  # the finalisers of other tests are none of our instructions
    for number in itertools.count():
        point = Point(number, files)
        gc.disable()
        try:
            sys.settrace(point.call)
            work()
        except Interruption:
            pass
        finally:
            sys.settrace(before)
            gc.enable()
        if not point.reached:
            assert number, "no instruction was seen"
            return
        yield number


class Point:
    """The place of one exception, as a trace function."""

    def __init__(self, number: int, files: tuple[str, ...]) -> None:
        self.left = number
        self.files = files
        self.reached = False

    def call(self, frame: FrameType, event: str, arg: object):
        if not frame.f_code.co_filename.startswith(self.files):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self.instruction

    def instruction(self, frame: FrameType, event: str, arg: object):
        if event == "opcode":
            if self.left == 0 and not self.reached:
                self.reached = True
                raise Interruption
            self.left -= 1
        return self.instruction
