"""Files and folders that are gone unless they were finished, wherever their maker is interrupted."""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self


def remove(path: Path) -> None:
    """Remove a file, a link or a whole folder, if there is one; what the system does not let go stays."""
    with suppress(OSError, ValueError):  # ValueError: a name that no file can have
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


class Unfinished:
    """A path whose file or folder is removed with this object, and at the end of the interpreter if it still exists then.

    Ctrl-C and SIGTERM raise between any two instructions, so between the making of a file and the `try` or `with` that guards it,
    too. Here the removal is arranged first: make the object, keep it, and only then make the file. `become` gives the file its
    name, `discard` or leaving a `with` block removes it at once. A forked copy of the process removes nothing.

    remove: called with the path in the place of a plain removal, perhaps more than once.
    """

    def __init__(self, path: Path, remove: Callable[[Path], None] = remove) -> None:
        self.path = path
        self._remove = remove
        self._finalizer = weakref.finalize(self, _remove_in, os.getpid(), path, remove)

    @classmethod
    def beside(cls, place: Path, suffix: str = ".partial", remove: Callable[[Path], None] = remove) -> Self:
        """At a hidden name of its own in the folder of `place`."""
        # By chance, not by the process's number: in a container that is the same one every time.
        return cls(place.with_name(f".{place.name}.{os.urandom(5).hex()}{suffix}"), remove)

    def become(self, place: Path) -> None:
        """It is finished: rename it to `place`, replacing a file there. Raises OSError, and is still unfinished then."""
        os.replace(self.path, place)
        self.keep()

    def keep(self) -> None:
        """What lies at the path is not, or no longer, ours to remove."""
        self._finalizer.detach()

    def discard(self) -> None:
        """Remove it now, unless it has become something. Idempotent."""
        if self._finalizer.alive:
            self._remove(self.path)
            self.keep()  # afterwards: an interrupted removal is made up for

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.discard()


def _remove_in(process: int, path: Path, remove: Callable[[Path], None]) -> None:
    if os.getpid() == process:
        with suppress(OSError):  # nobody is there to be told
            remove(path)
