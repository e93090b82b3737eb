"""Dimensions of a network from its artifact's meta."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ouzel.errors import BundleError

_MOST = 1 << 20  # no dimension of a speech model comes near


def sizes(stage: str, meta: Mapping[str, Any], keys: Sequence[str]) -> dict[str, int]:
    """The named whole numbers, each from 1 to 2^20; BundleError names the first that is missing or wrong."""
    for key in keys:
        value = meta.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST:
            raise BundleError(f"The {stage}'s {key!r} in the manifest is {value!r}; convert the bundle again.")
    return {key: meta[key] for key in keys}
