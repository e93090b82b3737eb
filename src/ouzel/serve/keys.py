"""Files that hold API keys."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

from ouzel.errors import ConfigError

log = logging.getLogger("ouzel.serve")
MAX_BYTES = 64 << 10


def read_keys(path: Path) -> tuple[str, ...]:
    """The keys in a file, one a line; empty lines and lines that begin with # do not count.

    Raises ConfigError, which never quotes a key, for a file that cannot be read, has none, or that anyone may write to.
    """
    check_secret(path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"The file of API keys {str(path)!r} cannot be read: {error.strerror or error}.") from error
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path} is no file of API keys: it has more than {MAX_BYTES >> 10} KiB.")
    lines = [line.strip() for line in data.decode("utf-8", "replace").splitlines()]
    for number, line in enumerate(lines, 1):
        if line[:1] not in ("", "#") and not (line.isascii() and line.isprintable() and " " not in line):
            raise ConfigError(f"{path}, line {number}: a key is one word of ASCII characters, for it travels in an HTTP header.")
    keys = tuple(line for line in lines if line[:1] not in ("", "#"))
    if not keys:  # no keys would mean that everybody is let in
        raise ConfigError(f"{path} has no API key; write one a line.")
    return keys


def check_secret(path: Path) -> None:
    """Raises ConfigError for a file that anyone may write to: whoever does lets himself in. One that anyone may read is only
    warned about, since that is how containers mount their secrets."""
    if os.name != "posix":
        return  # elsewhere the mode says nothing
    try:
        mode = path.stat().st_mode
    except OSError:
        return  # reading it says why
    if mode & stat.S_IWOTH:
        raise ConfigError(f"{path} holds API keys and everyone on this machine may write to it: chmod o-w {path}")
    if mode & stat.S_IROTH:
        log.warning("%s holds API keys and everyone on this machine may read it: chmod o-r %s", path, path)
