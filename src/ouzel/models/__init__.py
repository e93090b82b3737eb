"""Model families: one folder each, known to the rest only through `base` and the registry."""

from ouzel.models.base import Family, Frontend, Networks, Progress
from ouzel.models.registry import families, get_family, recognise_family, register_family, unregister_family

__all__ = [
    "Family",
    "Frontend",
    "Networks",
    "Progress",
    "families",
    "get_family",
    "recognise_family",
    "register_family",
    "unregister_family",
]
