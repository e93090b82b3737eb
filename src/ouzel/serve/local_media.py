"""Files that a client may point to: those below one directory of the operator's, whatever links and dots are in their paths."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ouzel.audio.recording import refused
from ouzel.errors import UsageError

FLAG = "--allowed-local-media-path"


def path_of(uri: str) -> str:
    """The path in a file: URI of this machine. Raises UsageError."""
    try:
        parts = urlsplit(uri)
        path = unquote(parts.path, errors="strict")
    except ValueError:
        raise refused("the file: address is malformed.") from None
    if parts.netloc.lower() not in ("", "localhost") or parts.query or parts.fragment or not path:
        raise refused("a file: address is file:///PATH, with special characters as %XX.")
    return path


def read_below(folder: Path, path: str, max_bytes: int) -> bytes:
    """The file's bytes. folder: resolved. path: absolute, or relative to it.

    Raises UsageError, the same for everything outside, whether it is there or not.
    """
    outside = refused(f"the file is not below the directory that {FLAG} of the server names.")
    try:
        real = Path(folder, path).resolve()
        inside = real.relative_to(folder).parts
    except (ValueError, OSError, RuntimeError):  # a NUL, a name that is too long, links in a circle
        raise outside from None
    if not inside:
        raise outside
    try:
        with os.fdopen(_open(folder, inside), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise refused("the path names something that is not a file.")
            data = file.read(max_bytes + 1)
    except FileNotFoundError:
        raise refused("there is no such file.") from None
    except OSError as error:
        raise refused(f"the file cannot be read: {error.strerror}.") from None
    if len(data) > max_bytes:
        raise refused(f"the recording has more than {max_bytes:,} bytes.")
    return data


def _open(folder: Path, parts: tuple[str, ...]) -> int:
    """Step by step without following links: a link that appeared after the path was resolved is an error, not a way out."""
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in parts[:-1]:
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = below
        # Not to wait for whoever would write into a pipe.
        return os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
    finally:
        os.close(here)


def check_folder(path: str) -> Path:
    """The directory, resolved. Raises UsageError."""
    try:
        folder = Path(path).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise UsageError(f"{FLAG} {path}: {getattr(error, 'strerror', None) or 'not a directory'}.") from None
    if not folder.is_dir():
        raise UsageError(f"{FLAG} {path}: not a directory.")
    return folder
