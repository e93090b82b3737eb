"""The ExecuTorch package: found, checked and imported once, and its one pool of threads.

Only its native half is imported. Python's `executorch.runtime` would bring the exporter along: ten seconds of imports.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from ouzel.errors import MissingExtraError, UsageError

EXTRA = "executorch"
_SERIES = "1.5."  # the native module has no stable interface: another series may take other arguments
_INSTALL = f"install it with: pip install 'ouzel[{EXTRA}]'"
_MAX_THREADS = 1024  # more is a slip; a million of them take the whole machine down

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Library:
    """native: the extension module. torch: its tensors are what programs take and give."""

    version: str
    native: Any
    torch: Any

    @property
    def backends(self) -> tuple[str, ...]:
        """The delegates that are compiled in, sorted; that one is says nothing of a device or a driver for it."""
        return tuple(sorted(self.native._get_registered_backend_names()))


def installed() -> str:
    """The version that is installed, without importing it; MissingExtraError when there is none or one of another series."""
    try:
        version = metadata.version("executorch")
    except metadata.PackageNotFoundError:
        raise MissingExtraError(f"ExecuTorch is not installed; {_INSTALL}.") from None
    if not version.startswith(_SERIES):
        raise MissingExtraError(f"ExecuTorch {version} is installed, but ouzel runs {_SERIES}x only; {_INSTALL}.")
    return version


@cache
def executorch() -> Library:
    """The library, imported at the first call; MissingExtraError when it is absent, of another series or broken."""
    version = installed()
    spec = importlib.util.find_spec("executorch")
    try:
        torch = importlib.import_module("torch")  # before the native module, which is linked to it
        native = importlib.import_module("executorch.extension.pybindings._C")
        for place in (spec.submodule_search_locations or ()) if spec else ():
            for path in Path(place, "extension", "llm", "custom_ops").glob("*custom_ops_aot_lib.*"):
                torch.ops.load_library(path)  # attention over key/value buffers in place
    except (ImportError, OSError) as error:
        raise MissingExtraError(f"ExecuTorch {version} cannot be imported ({error}); {_INSTALL}.") from error
    return Library(version, native, torch)


def quietly(action: Callable[[], Result]) -> tuple[Result | None, str]:
    """(result, ""), or (None, why not): the native module tells sys.stderr the reason and raises a number."""
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told):
            return action(), ""
    except RuntimeError as error:
        # "[program.cpp:114] File size is too small" or the like; the first line is the cause, what follows are consequences.
        lines = [line.partition("] ")[2].strip() or line for line in told.getvalue().splitlines()]
        return None, next(iter(lines), str(error)).rstrip(".")


class Pool:
    """The threads of all programs in the process. A reset under a loaded program crashes, so they stay until all are gone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: weakref.WeakSet[Any] = weakref.WeakSet()

    def join(self, user: Any, threads: int) -> None:
        """Note that `user` is about to load a program. threads: 0 takes the pool as it is.

        UsageError for a number out of range, or another than that of the programs that are loaded already.
        """
        if threads < 0:
            raise UsageError(f"The number of threads must be 0 (automatic) or more, not {threads}.")
        if threads > _MAX_THREADS:
            raise UsageError(f"The number of threads must be at most {_MAX_THREADS}, not {threads}.")
        native = executorch().native
        with self._lock:
            now, _ = quietly(native._threadpool_get_thread_count)
            if threads not in (0, now):
                if self._users:
                    raise UsageError(
                        f"ExecuTorch has one pool of threads for all stages of a process, which has {now} now: "
                        f"give every stage on it the same number of threads or 0, not {threads}."
                    )
                quietly(lambda: native._unsafe_reset_threadpool(threads))
            self._users.add(user)


POOL = Pool()
