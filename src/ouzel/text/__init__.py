"""The text front end: pure functions from what a user typed to segments that a voice can speak. Works for any model."""

from .boundary import SOFT_LIMIT
from .budget import split_budget
from .characters import speakable, unspeakable_characters
from .markup import strip_markup
from .normalise import normalize
from .prepare import PreparedText, prepare
from .splitter import GRANULARITIES, MAX_TEXT_CHARS, Granularity, Splitter, split

__all__ = [
    "GRANULARITIES",
    "MAX_TEXT_CHARS",
    "SOFT_LIMIT",
    "Granularity",
    "PreparedText",
    "Splitter",
    "normalize",
    "prepare",
    "speakable",
    "split",
    "split_budget",
    "strip_markup",
    "unspeakable_characters",
]
