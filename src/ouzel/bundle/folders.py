"""Where ouzel keeps what it makes: bundles in the data folder, what can be made again in the cache folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ouzel.errors import UsageError


def data_folder() -> Path:
    """$OUZEL_HOME, or the platform's place for a user's data plus `ouzel`."""
    home = os.environ.get("OUZEL_HOME")
    if home:
        return Path(os.path.expanduser(home)).absolute()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", _home() / "AppData" / "Local")) / "ouzel"
    if sys.platform == "darwin":
        return _home() / "Library" / "Application Support" / "ouzel"
    return Path(os.environ.get("XDG_DATA_HOME") or _home() / ".local" / "share") / "ouzel"


def cache_folder() -> Path:
    """$OUZEL_HOME/cache, or the platform's place for a user's caches plus `ouzel`."""
    if os.environ.get("OUZEL_HOME"):
        return data_folder() / "cache"
    if sys.platform == "win32":
        return data_folder() / "cache"
    if sys.platform == "darwin":
        return _home() / "Library" / "Caches" / "ouzel"
    return Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache") / "ouzel"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # no $HOME, and the user's number has no entry in the password file, as in some containers
        raise UsageError("This user has no home folder; set OUZEL_HOME to a folder for models and downloads.") from None


def models_folder() -> Path:
    """Where `ouzel pull` puts bundles and `ouzel models` looks for them."""
    return data_folder() / "models"
