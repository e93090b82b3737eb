"""How any English word is said: the dictionary first, then words made of its words, then letters to sounds."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator
from functools import cache, cached_property, lru_cache
from pathlib import Path

from .endings import Known, Phones, compound, contracted, inflected, plural, prefixed, respelt
from .letter_sounds import LetterSounds
from .letters import NAMES
from .word_store import WordStore

DATA = Path(__file__).parent / "data"
_DEPTH = 3
"""Endings on endings: unfriendliness is un, friend, li and ness."""
_LONGEST_PIECE = 32
_LONGEST_SPELLED = 8
_RUN = re.compile(r"(.)\1{2,}")
_LIGATURES = str.maketrans({"’": "'", "æ": "ae", "œ": "oe", "ø": "o", "ß": "ss", "ł": "l", "đ": "d", "ð": "th", "þ": "th"})
_NO_VOWEL = re.compile("[^aeiouy]+")


def spelled(word: str) -> Phones:
    """The names of the letters, stress on the last."""
    names = [phone for letter in word[:-1] for phone in NAMES[letter.upper()]]
    return (*(phone.replace("1", "2") for phone in names), *NAMES[word[-1].upper()])


def _shortened(word: str) -> Iterator[str]:
    """Spellings of a word with letters drawn out: sooooon as soon and son, the longer ones first."""
    runs = [match.group(1) for match in _RUN.finditer(word)][:3]
    for sizes in itertools.product((2, 1), repeat=len(runs)):
        rest = iter(sizes)

        def fewer(match: re.Match[str], rest: Iterator[int] = rest) -> str:
            return match.group(1) * next(rest, 1)

        yield _RUN.sub(fewer, word)


class Lexicon:
    """Pronunciation of words; safe to share between threads."""

    def __init__(self, words: WordStore, letter_sounds: Path) -> None:
        self._words = words
        self._weights = letter_sounds
        self._cached = lru_cache(4096)(self._pronounce)

    @cached_property
    def _guess(self) -> LetterSounds:
        return LetterSounds.load(self._weights)

    def pronounce(self, word: str) -> Phones:
        """Phones (`ouzel.english.PHONES`) with dictionary stress for a word of letters and apostrophes.

        A single capital is the name of that letter; other capitals count as small letters, accents are ignored, and so is every
        character that is no letter. At least one vowel for any word with a letter of the alphabet a to z, () for one without.
        """
        return NAMES[word] if word in NAMES else self._cached(_plain(word))

    def knows(self, word: str) -> bool:
        """Whether the reading comes from the dictionary, be it through an ending or a compound; False where it is guessed."""
        return word in NAMES or self._known(_plain(word)) is not None

    def _known(self, word: str) -> Phones | None:
        return self._derived(word, _DEPTH, self._words.get) or compound(word, self._words.ordinary)

    def _derived(self, word: str, depth: int, find: Known) -> Phones | None:
        """The word, or one that it is a form of, from the dictionary."""
        found = find(word)
        if found or not depth:
            return found

        def known(stem: str) -> Phones | None:
            return self._derived(stem, depth - 1, find)

        def ordinary(stem: str) -> Phones | None:
            return self._derived(stem, depth - 1, self._words.ordinary)

        if "'" in word:
            return contracted(word, known)
        return inflected(word, known, ordinary) or prefixed(word, ordinary) or respelt(word, ordinary)

    def _pronounce(self, word: str) -> Phones:
        if found := self._known(word):
            return found
        if "'" in word:
            return tuple(phone for part in word.split("'") if part for phone in self._cached(part))
        if not word:
            return ()
        if _RUN.search(word):
            spellings = list(_shortened(word))
            return next(filter(None, map(self._known, spellings)), None) or self._unknown(spellings[0])
        return self._unknown(word)

    def _unknown(self, word: str) -> Phones:
        if _NO_VOWEL.fullmatch(word) and len(word) <= _LONGEST_SPELLED:
            several = len(word) > 3 and word.endswith("s") and not word.endswith("ss")  # pdfs
            return plural(spelled(word[:-1])) if several else spelled(word)
        pieces = (word[i : i + _LONGEST_PIECE] for i in range(0, len(word), _LONGEST_PIECE))
        return tuple(phone for piece in pieces for phone in self._guess.pronounce(piece))


def _plain(word: str) -> str:
    """Small letters a to z and apostrophes, none at the ends."""
    word = unicodedata.normalize("NFKD", word.lower().translate(_LIGATURES))
    return "".join(c for c in word if "a" <= c <= "z" or c == "'").strip("'")


@cache
def default_lexicon() -> Lexicon:
    """The lexicon that the package ships: the CMU dictionary, newer words, trained letter-to-sound weights."""
    return Lexicon(WordStore(DATA / "words.bin"), DATA / "letter_sounds.npz")
