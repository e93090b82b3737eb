"""The phones of American English as the CMU dictionary writes them, plus the flap and silence.

A *spoken form* is a flat sequence of symbols: phones, `BREAK` between words, and marks of punctuation. The phone track of a
voice knows `PHONES` only; marks and breaks tell durations and pitch what kind of pause or boundary is meant.
"""

from __future__ import annotations

from collections.abc import Sequence

SILENCE = "_"
FLAP = "DX"  # the t of "water"
CONSONANTS = tuple("B CH D DH DX F G HH JH K L M N NG P R S SH T TH V W Y Z ZH".split())
VOWELS = tuple("AA AE AH AO AW AY EH ER EY IH IY OW OY UH UW".split())
STRESSED_VOWELS = tuple(vowel + stress for vowel in VOWELS for stress in "012")
"""0 unstressed, 1 primary, 2 secondary; AH0 is the schwa."""

PHONES = (SILENCE, *CONSONANTS, *STRESSED_VOWELS)
BREAK = " "
MARKS = (",", ".", "?", "!", ";", ":")
SYMBOLS = (*PHONES, BREAK, *MARKS)

_BEFORE_FLAP = frozenset(STRESSED_VOWELS) | {"R"}
_AFTER_FLAP = frozenset(symbol for symbol in STRESSED_VOWELS if symbol.endswith("0"))


def is_vowel(symbol: str) -> bool:
    return symbol[-1] in "012"


def flap(phones: Sequence[str]) -> list[str]:
    """The phones of one word with each T between a vowel (or R) and an unstressed vowel as a flap."""
    out = list(phones)
    for i in range(1, len(out) - 1):
        if out[i] == "T" and out[i - 1] in _BEFORE_FLAP and out[i + 1] in _AFTER_FLAP:
            out[i] = FLAP
    return out
