"""Checking a bundle's files against its manifest.

Sizes are checked every time. Checksums are too, unless a stamp in the cache folder says that a file with this size, modification
time, change time and inode has already matched this sum, so an unchanged bundle of gigabytes is hashed only once.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from ouzel.bundle.folders import cache_folder
from ouzel.bundle.manifest import MANIFEST_NAME, Manifest
from ouzel.bundle.progress import Progress, silent
from ouzel.errors import BundleError, UsageError
from ouzel.unfinished import Unfinished

_BLOCK = 1 << 20
# Left behind by file managers and sync tools; harmless beside a bundle's own files.
IGNORED = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})

Stamps = dict[str, list[int | str]]


def file_sha256(path: Path) -> str:
    """Hex sha256 of a file, read in blocks."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def verify_files(root: Path, manifest: Manifest, *, force: bool = False, progress: Progress = silent) -> None:
    """Raise BundleError with every missing, extra, truncated or altered file of the bundle at `root` (absolute)."""
    problems = _shape_problems(root, manifest)
    if problems:
        raise _broken(root, problems)
    known = {} if force else _read_stamps(root)
    stamps: Stamps = {}
    done = 0
    for rel, entry in manifest.files.items():
        stamp = _stamp(root / rel, entry.sha256)
        if known.get(rel) != stamp and file_sha256(root / rel) != entry.sha256:
            problems.append(f"{rel} has been altered (its checksum differs)")
        stamps[rel] = stamp
        done += entry.size
        progress("verify", done / max(manifest.size, 1))
    if problems:
        raise _broken(root, problems)
    if stamps != known:
        _write_stamps(root, stamps)


def remember(root: Path, manifest: Manifest) -> None:
    """Note that every file of the bundle at `root` (absolute, resolved) has just been hashed and matched."""
    _write_stamps(root, {rel: _stamp(root / rel, entry.sha256) for rel, entry in manifest.files.items()})


def _shape_problems(root: Path, manifest: Manifest) -> list[str]:
    problems = []
    for rel, entry in manifest.files.items():
        path = root / rel
        if not path.is_file():
            problems.append(f"{rel} is missing")
        elif (size := path.stat().st_size) != entry.size:
            problems.append(f"{rel} has {size} bytes instead of {entry.size}")
    for path in sorted(root.rglob("*")):
        rel = path.relative_to(root).as_posix()
        if not path.is_dir() and rel not in manifest.files and rel != MANIFEST_NAME and path.name not in IGNORED:
            problems.append(f"{rel} does not belong to it")
    return problems


def _broken(root: Path, problems: list[str]) -> BundleError:
    shown = "; ".join(problems[:5]) + (f"; and {len(problems) - 5} more" if len(problems) > 5 else "")
    return BundleError(f"Bundle {root} is damaged: {shown}. Convert or pull it again.")


def _stamp(path: Path, sha256: str) -> list[int | str]:
    stat = path.stat()
    return [sha256, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]


def _stamp_file(root: Path) -> Path:
    return cache_folder() / "verified" / f"{hashlib.sha256(os.fsencode(root)).hexdigest()[:32]}.json"


def _read_stamps(root: Path) -> Stamps:
    try:
        value = json.loads(_stamp_file(root).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, UsageError):  # UsageError: there is no home folder
        return {}  # never verified, or the cache was cleared: hash again
    return value if isinstance(value, dict) else {}


def _write_stamps(root: Path, stamps: Stamps) -> None:
    try:
        target = _stamp_file(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        with Unfinished.beside(target) as written:
            written.path.write_text(json.dumps(stamps), encoding="utf-8")
            written.become(target)
    except (OSError, UsageError):
        return  # a read-only home only costs the time to hash again
