"""Fractions, scores out of ten, and the sayings that look like them: 1/2, 2 3/4, 7/10, 24/7, 120/80."""

from __future__ import annotations

import re

from .numbers import cardinal, number, ordinal

_FRACTION = re.compile(r"(?<![\w.,/])(?:(\d{1,9})[ -])?(\d{1,9})/(\d{1,9})(?:ths?|rds?|nds?)?(?![\w/])(?!\.\d)")
_SCORE = re.compile(r"(?<![\w.,/])(\d{1,9}\.\d{1,9})\s?/\s?(\d{1,9})(?![\w/])(?!\.\d)")
_SAYINGS = {"24/7": "twenty four seven", "9/11": "nine eleven"}


def speak_fractions(text: str) -> str:
    text = _SCORE.sub(lambda m: f"{number(m[1])} out of {cardinal(m[2])}", text)
    return _FRACTION.sub(_fraction, text)


def _fraction(found: re.Match[str]) -> str:
    whole, over, under = found.groups()
    lead = f"{cardinal(whole)} " if whole else ""
    if f"{over}/{under}" in _SAYINGS:
        return lead + _SAYINGS[f"{over}/{under}"]
    n, d = int(over), int(under)
    proper = n < d and over[0] != "0" and under[0] != "0"
    if whole and proper and d <= 100:
        return f"{cardinal(whole)} and {_parts(n, d, 'a')}"
    if d in (5, 10, 100) and n <= d and (n == d or d != 5):
        return f"{lead}{cardinal(over)} out of {cardinal(under)}"
    if n == d:
        return f"{lead}{cardinal(over)} {cardinal(under)}"
    if (proper and d <= 100) or (2 <= d < 10 and n < 20):
        return lead + _parts(n, d, "one")
    return f"{lead}{cardinal(over)} over {cardinal(under)}"


def _parts(n: int, d: int, one: str) -> str:
    name = {2: "half", 4: "quarter"}.get(d) or ordinal(str(d))
    if n == 1:
        return f"{one} {name}"
    return f"{cardinal(str(n))} {'halves' if d == 2 else name + 's'}"
