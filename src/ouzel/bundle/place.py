"""The place where a finished bundle goes: what may be replaced there, and the exchange itself."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

from ouzel.bundle.manifest import MANIFEST_NAME
from ouzel.bundle.verify import IGNORED
from ouzel.errors import UsageError

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
    with tempfile.TemporaryDirectory(
        prefix=f".{place.name}.", suffix=".replaced", dir=place.parent, ignore_cleanup_errors=True
    ) as aside:
        old = Path(aside) / "old"
        os.rename(place, old)
        try:
            os.rename(new, place)
        except BaseException:
            os.rename(old, place)
            raise


def claim(folder: Path) -> None:
    """Make `folder` for an unfinished bundle and note that this process fills it."""
    folder.mkdir(parents=True)
    (folder / _OWNER).write_text(str(os.getpid()), encoding="ascii")


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
    shutil.rmtree(folder)


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
