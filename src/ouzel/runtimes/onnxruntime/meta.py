"""Dimensions of a network from its artifact's meta."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ouzel.errors import BundleError

if TYPE_CHECKING:
    from ouzel.bundle import Artifact


def sizes(artifact: Artifact, keys: Sequence[str]) -> dict[str, int]:
    """The named whole numbers, each at least 1; BundleError names the first that is missing or wrong."""
    for key in keys:
        value = artifact.meta.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise BundleError(f"The {artifact.stage}'s {key!r} in the manifest is {value!r}; convert the bundle again.")
    return {key: artifact.meta[key] for key in keys}
