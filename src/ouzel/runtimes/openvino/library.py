"""The openvino package: found without importing it, imported at first use."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from importlib import metadata
from typing import Any

from ouzel.errors import MissingExtraError

EXTRA = "pip install 'ouzel[openvino]'"
YEARS = ("2025", "2026")
"""Of the versions that are known to work."""
_PACKAGE = "openvino"


def version() -> str:
    """Of the installed package. MissingExtraError when there is none, or one of other years."""
    try:
        found = metadata.version(_PACKAGE)
    except metadata.PackageNotFoundError:
        found = ""
    if not found or importlib.util.find_spec(_PACKAGE) is None:
        raise MissingExtraError(f"OpenVINO is not installed; install it with: {EXTRA}.")
    if found.partition(".")[0] not in YEARS:
        raise MissingExtraError(f"ouzel works with OpenVINO {' and '.join(YEARS)}, not with {found}; install it with: {EXTRA}.")
    return found


def openvino(module: str = _PACKAGE) -> Any:
    """The package, or a module of it, imported at first use. Raises as `version`."""
    if module in sys.modules:
        return sys.modules[module]
    found = version()
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(f"OpenVINO {found} cannot be imported ({error}); install it again with: {EXTRA}.") from error


@cache
def core() -> Any:
    """OpenVINO's entry point, made once: it looks at the machine."""
    return openvino().Core()
