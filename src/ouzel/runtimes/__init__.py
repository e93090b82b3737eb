"""Inference runtimes: one folder each, known to the rest only through `base` and the registry."""

from ouzel.runtimes.base import Offer, Progress, Runtime, RuntimeStatus, StageOptions
from ouzel.runtimes.registry import active_runtime, get_runtime, register_runtime, runtimes, unregister_runtime

__all__ = [
    "Offer",
    "Progress",
    "Runtime",
    "RuntimeStatus",
    "StageOptions",
    "active_runtime",
    "get_runtime",
    "register_runtime",
    "runtimes",
    "unregister_runtime",
]
