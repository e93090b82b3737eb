"""The MNN package: found without importing it, imported without its chatter, its versions held apart."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any

from ouzel.errors import MissingExtraError

EXTRA = "pip install 'ouzel[mnn]'"
SERIES = "3.6"
"""Versions that are known to work: how modules treat buffers is not part of MNN's documentation."""
_PACKAGE = "MNN"
_STDOUT = 1
_lock = threading.RLock()


def version() -> str:
    """Of the installed package. MissingExtraError when there is none, or one of another series."""
    try:
        found = metadata.version(_PACKAGE)
    except metadata.PackageNotFoundError:
        found = ""
    if not found or importlib.util.find_spec(_PACKAGE) is None:
        raise MissingExtraError(f"MNN is not installed; install it with: {EXTRA}.")
    if found != SERIES and not found.startswith(f"{SERIES}."):
        raise MissingExtraError(f"ouzel works with MNN {SERIES}.*, not with {found}; install it with: {EXTRA}.")
    return found


def library(module: str = _PACKAGE) -> Any:
    """The package `module` of MNN's ("MNN", "MNN.expr", "MNN.nn", "_tools"), imported at first use. Raises as `version`."""
    if module in sys.modules:
        return sys.modules[module]
    found = version()
    try:
        with captured():
            return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(f"MNN {found} cannot be imported ({error}); install it again with: {EXTRA}.") from error


@contextmanager
def captured() -> Iterator[list[str]]:
    """Put the lines that MNN's native code prints into a list, which is filled at the end.

    It writes to the process's standard output, where ouzel's audio may go. So does, meanwhile, everything else in the process.
    """
    lines: list[str] = []
    with _lock, tempfile.TemporaryFile() as file:
        sys.stdout.flush()
        kept = os.dup(_STDOUT)
        try:
            os.dup2(file.fileno(), _STDOUT)
            yield lines
        finally:
            if os.name == "posix":
                ctypes.CDLL(None).fflush(None)  # what sits in the C library's buffer
            os.dup2(kept, _STDOUT)
            os.close(kept)
            file.seek(0)
            lines += file.read().decode("utf-8", "replace").splitlines()
