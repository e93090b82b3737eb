"""The place where a finished bundle goes: what may be replaced there, and the exchange itself."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

from ouzel.bundle.manifest import MANIFEST_NAME
from ouzel.bundle.verify import IGNORED
from ouzel.errors import UsageError
from ouzel.unfinished import Unfinished, remove

_OWNER = ".ouzel-writer"  # in an unfinished folder: the number of the process that fills it


def check_replaceable(place: Path) -> None:
    """Raise UsageError unless `place` is free, an empty folder, or a bundle (damaged or not) that holds no other file.

    Many programs have a manifest.json: it counts only if it looks like ours, so that no one loses a folder of something else.
    """
    if not os.path.lexists(place):
        return
    if os.path.isdir(place) and not os.listdir(place):
        return
    try:
        value = json.loads((place / MANIFEST_NAME).read_bytes())
        files, version = value["files"], value["format"]
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        files = version = None
    if not isinstance(files, dict) or not isinstance(version, int):
        raise UsageError(f"{place} exists and is not a bundle; choose another place.")
    found = (path for path in sorted(place.rglob("*")) if path.is_symlink() or not path.is_dir())
    for path in found:
        rel = path.relative_to(place).as_posix()
        if rel not in files and rel != MANIFEST_NAME and path.name not in IGNORED:
            raise UsageError(f"{place} holds {rel}, which is no part of the bundle and would be lost; move it away first.")


def swap_in(new: Path, place: Path) -> None:
    """Rename folder `new` to `place`, on the same disk; a bundle there goes once the new one has its name, or stays."""
    check_replaceable(place)
    if not os.path.lexists(place):
        os.rename(new, place)
        return
    with Unfinished.beside(place, ".replaced", partial(_put_back_or_remove, place)) as old:
        os.rename(place, old.path)
        os.rename(new, place)


def claim(folder: Path) -> Unfinished:
    """Make `folder` for an unfinished bundle and note that this process fills it; it goes with the object that is returned."""
    claimed = Unfinished(folder, _remove_own)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        claimed.keep()
        raise
    (folder / _OWNER).write_text(str(os.getpid()), encoding="ascii")
    return claimed


def unclaim(folder: Path) -> None:
    """The folder is complete: it holds the bundle's own files only."""
    (folder / _OWNER).unlink(missing_ok=True)


def clear_leftover(folder: Path) -> None:
    """Remove the unfinished folder of a process that was killed. UsageError if one still fills it, or if it is something else."""
    owner = folder / _OWNER
    if not owner.is_file():
        if not folder.is_dir() or any(folder.iterdir()):
            raise UsageError(f"{folder} is in the way and was not made by ouzel; move it away or choose another place.")
    elif _runs(owner.read_bytes()):
        raise UsageError(
            f"{folder} exists: another conversion to the same place is at work; wait for it or choose another place."
        )
    Unfinished(folder).discard()  # interrupted half-way, it goes all the same


def _put_back_or_remove(place: Path, old: Path) -> None:
    """What an exchange leaves behind: the old bundle goes only when something has taken its place."""
    if os.path.lexists(place):
        remove(old)
    elif os.path.lexists(old):
        os.rename(old, place)


def _remove_own(folder: Path) -> None:
    owner = folder / _OWNER
    if not (owner.is_file() and _runs(owner.read_bytes())):  # else another process has taken the place in the meantime
        remove(folder)


def _runs(number: bytes) -> bool:
    if os.name != "posix" or not number.isdigit() or int(number) == os.getpid():
        return False
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
