"""Long text in pieces of at most so many tokens, cut where a speaker would pause."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..errors import UsageError
from .boundary import cuts
from .characters import is_extending, speakable

_WORD_END = re.compile(r"\s+")
_LEVELS = ("sentence", "clause", "word", "cluster", "character")


def split_budget(text: str, count_tokens: Callable[[str], int], max_tokens: int) -> list[str]:
    """Cut a text into pieces for one voice and one sampling, each within the model's comfortable length (P35, P39, P40).

    Cuts fall between sentences; a sentence over the budget is cut between clauses, a clause between words, a word between
    characters (never inside a combined one). Neighbours are merged again while they fit, so pieces are few and full.
    count_tokens: tokens of a text, called O(units + pieces x log) times; max_tokens: inclusive limit of count_tokens(piece).
    Returns stripped pieces, each with something speakable; all speakable characters are kept, in order. [] if there are none.
    Raises UsageError if max_tokens cannot hold a single character.
    """
    if max_tokens < 1:
        raise UsageError(f"A token budget must be at least 1, not {max_tokens}.")
    if not speakable(text):
        return []
    text = text.strip()

    def fits(start: int, end: int) -> bool:
        return count_tokens(text[start:end].strip()) <= max_tokens

    if fits(0, len(text)):
        return [text]
    ends = _units(text, 0, len(text), 0, fits)
    pieces: list[str] = []
    first = start = 0
    while first < len(ends):
        last = _furthest(ends, first, start, fits)
        if last < 0:
            unit = text[start]
            raise UsageError(
                f"A budget of {max_tokens} tokens is too small for {unit!r}, which alone needs {count_tokens(unit)}."
            )
        pieces.append(text[start : ends[last]].strip())
        start = ends[last]
        first = last + 1
    return [piece for piece in pieces if speakable(piece)]


def _units(text: str, start: int, end: int, level: int, fits: Callable[[int, int], bool]) -> list[int]:
    """End offsets of the units of text[start:end], the coarsest that fit; single characters are taken on trust."""
    out: list[int] = []
    at = start
    for offset in _ends(text[start:end], _LEVELS[level]):
        stop = start + offset
        if stop - at == 1 or fits(at, stop):
            out.append(stop)
        else:
            out += _units(text, at, stop, level + 1, fits)
        at = stop
    return out


def _ends(text: str, level: str) -> list[int]:
    if level in ("sentence", "clause"):
        return cuts(text, clause=level == "clause")
    if level == "word":
        return [*(m.end() for m in _WORD_END.finditer(text) if m.end() < len(text)), len(text)]
    if level == "character":
        return list(range(1, len(text) + 1))
    return [*(i for i in range(1, len(text)) if not is_extending(text[i]) and text[i - 1] != "\u200d"), len(text)]


def _furthest(ends: list[int], first: int, start: int, fits: Callable[[int, int], bool]) -> int:
    """Index of the last unit that text from `start` may reach, found by doubling and halving; -1 if not even the first fits.

    Token counts of growing text rise, with rare small dips where a tokenizer merges; a dip costs fullness, never the limit.
    """
    if not fits(start, ends[first]):
        return -1
    good, step = first, 1
    while good + step < len(ends) and fits(start, ends[good + step]):
        good += step
        step *= 2
    bad = min(good + step, len(ends))
    while bad - good > 1:
        middle = (good + bad) // 2
        if fits(start, ends[middle]):
            good = middle
        else:
            bad = middle
    return good
