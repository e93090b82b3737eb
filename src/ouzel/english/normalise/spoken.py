"""`normalise`: what a user typed as words, apostrophes and the marks , . ? ! ; :"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ..letters import LETTER_A as UNMISTAKABLE_A
from ..letters import letter_name
from .abbreviations import TAKE_LETTERS, speak_abbreviations
from .addresses import speak_addresses
from .calendar import speak_spans
from .capitals import speak_capitals
from .characters import to_ascii
from .marks import cut_words, tidy_marks
from .romans import speak_romans
from .spelling import LETTER_A
from .symbols import speak_symbols

_DIGIT = re.compile(r"\d")
_TOKEN = re.compile(rf"{LETTER_A}|[A-Za-z']+|[,.?!;:]")
_MOST_ROUNDS = 16


@dataclass(frozen=True, slots=True)
class Spoken:
    """text: ASCII letters, apostrophes in words, single spaces and the marks , . ? ! ; : and nothing else; "" if nothing is left.

    A single capital is the name of a letter ("F B I"), except the word I; "a" is the article. "A'" is the letter where "A" would
    be taken for the article. unspeakable: the distinct characters without a reading (other scripts, emoji), in order.
    """

    text: str
    unspeakable: tuple[str, ...] = ()


def normalise(text: str, known: Callable[[str], bool] | None = None) -> Spoken:
    """Write an English text the way it is spoken. Never raises for a str; its own output comes back unchanged.

    known: whether a lower-case word is in the lexicon. It decides what is read and what is spelled among words in capitals;
    without it a short list and the look of the word decide.
    """
    plain, unspeakable = to_ascii(text)
    plain = speak_addresses(plain)
    if "-" in plain:
        plain = speak_spans(plain)
    if _DIGIT.search(plain):
        # Loaded for texts with figures only: the rules and the number words take longer to load than to work.
        from .figures import speak_figures

        plain = speak_figures(plain, known)
    spoken = _words(speak_symbols(plain), known)
    # Taking out what stood between two words can make a new abbreviation or name of them; ordinary text is final at once.
    for _ in range(_MOST_ROUNDS):
        again = _words(spoken, known)
        if again == spoken:
            break
        spoken = again
    return Spoken(spoken, unspeakable)


def _words(text: str, known: Callable[[str], bool] | None) -> str:
    text = speak_abbreviations(speak_romans(cut_words(text)))
    return _letters(tidy_marks(speak_capitals(text, known)))


def _letters(text: str) -> str:
    """Each A as the article or the letter, so that `spoken_form` reads it the same way."""
    if "A" not in text and LETTER_A not in text:
        return text
    tokens = list(_TOKEN.finditer(text))
    words = ["A" if token.group() == LETTER_A else token.group() for token in tokens]
    out, at = [], 0
    for i, token in enumerate(tokens):
        if words[i] != "A":
            continue
        before, after = (words[i - 1] if i else None), (words[i + 1] if i + 1 < len(words) else None)
        named = letter_name(before, "A", after) is not None
        letter = token.group() == LETTER_A or (before is not None and before.lower() in TAKE_LETTERS)
        word = "A" if named else UNMISTAKABLE_A if letter else "a"
        out += [text[at : token.start()], word]
        at = token.end()
    return "".join([*out, text[at:]])
