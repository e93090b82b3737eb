"""The last step: only letters, apostrophes inside words, single spaces and the marks , . ? ! ; :"""

from __future__ import annotations

import re

from .spelling import LETTER_A

_PLURAL = re.compile(r"(?<=[A-Za-z])\((s|es)\)")
_BRACKETS = str.maketrans({c: ", " for c in "()[]{}|"})
_DASH = re.compile(r"\s--?\s|--+|(?<=\s)-(?=\w)|(?<=\w)-(?=\s)")
_ELLIPSIS = re.compile(r"\.(?:\s?\.)+")
_OTHER = re.compile(rf"[^A-Za-z',.?!;:{LETTER_A}]+")
_APOSTROPHE = re.compile(r"(?<![A-Za-z])'+|'+(?![A-Za-z])")
_QUOTED_A = re.compile(r"(?<![A-Za-z'])'?A'(?![A-Za-z'])")
_SPACES = re.compile(r" {2,}")
_RUN = re.compile(r"\s*([,.?!;:](?:[\s,.?!;:]*[,.?!;:])?)\s*")
_LONG_WORD = re.compile(r"[A-Za-z']{61,}")
_DRAWN_OUT = re.compile(r"([A-Za-z])\1{3,}")
_PIECE = 30


def tidy_marks(text: str) -> str:
    """Brackets and dashes become commas, a run of marks its strongest."""
    text = _QUOTED_A.sub(LETTER_A, text)
    text = _PLURAL.sub(r"\1", text).translate(_BRACKETS)
    text = _ELLIPSIS.sub(_ellipsis, _DASH.sub(", ", text))
    text = _SPACES.sub(" ", _APOSTROPHE.sub(" ", _OTHER.sub(" ", text)))
    text = _RUN.sub(_strongest, text)
    return text.strip().lstrip(",.?!;: ").rstrip(",;: ")


def cut_words(text: str) -> str:
    """Words that nobody could say in one breath are cut, drawn out ones (sooooo) shortened."""
    return _LONG_WORD.sub(_cut, _DRAWN_OUT.sub(r"\1\1", text))


def _ellipsis(found: re.Match[str]) -> str:
    """Three points are a pause before a small letter and an end otherwise."""
    rest = found.string[found.end() : found.end() + 2].lstrip()
    return ", " if rest[:1].isalpha() and (rest[0].islower() or not found.string[found.end()].isspace()) else ". "


def _strongest(found: re.Match[str]) -> str:
    marks = found[1]
    for strength in (".?!", ";:", ","):
        for mark in marks:
            if mark in strength:
                return f"{mark} "
    return " "


def _cut(found: re.Match[str]) -> str:
    word = found.group()
    return " ".join(word[i : i + _PIECE] for i in range(0, len(word), _PIECE))
