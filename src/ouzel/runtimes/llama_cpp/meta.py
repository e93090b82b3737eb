"""Numbers of a stage from its artifact's meta, and what the stage's options mean here."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

from ouzel.errors import BundleError, UsageError
from ouzel.runtimes.base import StageOptions

if TYPE_CHECKING:
    from ouzel.bundle import Artifact

MAX_THREADS = 512  # of ggml


def number(artifact: Artifact, key: str) -> float:
    """A positive finite number of the meta. BundleError when it is missing or wrong."""
    value = artifact.meta.get(key)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < math.inf:
        raise BundleError(f"The {artifact.stage}'s {key!r} in the manifest is {value!r}; convert the bundle again.")
    return float(value)


def threads_of(options: StageOptions) -> int:
    """How many threads to compute with; 0 takes one for each processor that this process may use."""
    if not 0 <= options.threads <= MAX_THREADS:
        raise UsageError(f"The number of threads must be from 0 (automatic) to {MAX_THREADS}, not {options.threads}.")
    if options.threads:
        return options.threads
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
