"""The three standard streams as a shell may hand them over: closed, or with an encoding that lacks characters."""

from __future__ import annotations

import codecs
import os
import sys
from contextlib import suppress
from io import TextIOWrapper

_LOSSY = "ouzel.lossy"


def mend_streams() -> None:
    """Put something in place of closed streams and let stdout write every text.

    A closed stream stays unusable (reading and writing it is an OSError, except that what goes to a closed stderr vanishes), but
    its number is taken, so that no file which is opened later gets the messages of some library.
    """
    codecs.register_error(_LOSSY, _encode)
    # Opened the wrong way round on purpose: a device that cannot be read, or not be written.
    for number, name, flags, mode in (
        (0, "stdin", os.O_WRONLY, "r"),
        (1, "stdout", os.O_RDONLY, "w"),
        (2, "stderr", os.O_WRONLY, "w"),
    ):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, flags)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            # Stays open for the whole run, as the standard stream it stands for does.
            stream = open(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors=_LOSSY)


def silence_stdout() -> None:
    """Nothing more goes to stdout; without it the interpreter flushes at exit, fails once more and prints a traceback."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _encode(error: UnicodeError) -> tuple[str | bytes, int]:
    """Bytes of a file name as they are, characters that the encoding lacks as \\u…."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    one = UnicodeEncodeError(error.encoding, error.object, error.start, error.start + 1, error.reason)
    kind = "surrogateescape" if "\udc80" <= error.object[error.start] <= "\udcff" else "backslashreplace"
    return codecs.lookup_error(kind)(one)
