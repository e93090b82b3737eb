"""Words and punctuation to the spoken form of a sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from .function_words import weak_form
from .letters import letter_name
from .phones import BREAK, MARKS, flap

Pronounce = Callable[[str], Sequence[str]]
"""A lower-case word (letters and apostrophes) to its phones with dictionary stress."""

_TOKEN = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)*'?|[,.?!;:]")


def spoken_form(text: str, pronounce: Pronounce) -> list[str]:
    """Symbols of `ouzel.english.phones` for a text of words (letters, apostrophes) and the marks , . ? ! ; :

    Anything else only separates. Weak forms are used inside a phrase; the last word before a mark keeps its stress. A single
    capital is the name of a letter (see `letters.letter_name`), as `ouzel.english.normalise` writes what is spelled.
    """
    tokens = _TOKEN.findall(text)
    out: list[str] = []
    following: str | None = None  # the first phone to the right, None at a mark
    for i in range(len(tokens) - 1, -1, -1):
        token = tokens[i]
        if token in MARKS:
            if out and out[-1] in MARKS:  # "?!": the first mark wins, and it comes later in this walk
                out[-1] = token
            else:
                out.append(token)
            following = None
            continue
        name = letter_name(tokens[i - 1] if i else None, token, tokens[i + 1] if i + 1 < len(tokens) else None)
        word = token.lower().rstrip("'")
        weak = name or (weak_form(word, following) if out and out[-1] not in MARKS else None)
        phones = list(weak) if weak else flap(pronounce(word))
        if not phones:
            continue
        if out and out[-1] not in MARKS:
            out.append(BREAK)
        out.extend(reversed(phones))
        following = phones[0]
    out.reverse()
    while out and out[0] in MARKS:
        del out[0]
    return out
