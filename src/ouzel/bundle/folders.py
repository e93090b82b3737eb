"""Where ouzel keeps what it makes: bundles in the data folder, what can be made again in the cache folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def data_folder() -> Path:
    """$OUZEL_HOME, or the platform's place for a user's data plus `ouzel`."""
    home = os.environ.get("OUZEL_HOME")
    if home:
        return Path(home).expanduser().absolute()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "ouzel"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "ouzel"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "ouzel"


def cache_folder() -> Path:
    """$OUZEL_HOME/cache, or the platform's place for a user's caches plus `ouzel`."""
    if os.environ.get("OUZEL_HOME"):
        return data_folder() / "cache"
    if sys.platform == "win32":
        return data_folder() / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ouzel"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ouzel"


def models_folder() -> Path:
    """Where `ouzel pull` puts bundles and `ouzel models` looks for them."""
    return data_folder() / "models"
