"""What the engine is given to speak: prompt rows with their sampling, piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ouzel.adapters import Codes, PromptRows, TalkerSampling

_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 / golden ratio: the increment of splitmix64
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Segment:
    """One piece of an utterance, spoken with fresh talker and decoder states.

    rows: called once, in the talker thread, just before the piece is spoken, so that a book's rows are never all in memory.
    sampling: its `seed` is already the segment's own (`segment_seed`).
    reference_codes: int64 (R, groups) that prime the decoder and are not heard (contract 6.3).
    """

    rows: Callable[[], PromptRows]
    sampling: TalkerSampling
    reference_codes: Codes | None = None


def segment_seed(seed: int, index: int) -> int:
    """The 64-bit generator key of segment `index`: the utterance's seed itself for the first, splitmix64 of both after it."""
    seed = int(seed)  # a numpy integer would overflow
    if index == 0:
        return seed & _MASK
    z = (seed + index * _GOLDEN) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)
