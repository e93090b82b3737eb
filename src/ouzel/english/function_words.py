"""Weak forms: the short words that carry no stress inside a phrase."""

from __future__ import annotations

from .phones import is_vowel

_TABLE = """
a AH0|an AH0 N|the DH AH0|and AE0 N D|or AO0 R|but B AH0 T|nor N AO0 R|if IH0 F|as AE0 Z|than DH AE0 N|that DH AE0 T
of AH0 V|to T AH0|in IH0 N|on AA0 N|at AE0 T|by B AY0|for F AO0 R|from F R AH0 M|with W IH0 DH|into IH0 N T UW0
is IH0 Z|am AE0 M|are AA0 R|was W AH0 Z|were W ER0|be B IY0|been B IH0 N|do D UW0|does D AH0 Z|has HH AE0 Z|have HH AE0 V
had HH AE0 D|can K AE0 N|will W IH0 L|would W UH0 D|could K UH0 D|should SH UH0 D|shall SH AE0 L|must M AH0 S T
he HH IY0|she SH IY0|it IH0 T|we W IY0|you Y UW0|they DH EY0|me M IY0|him HH IH0 M|her HH ER0|us AH0 S|them DH EH0 M
i AY2|my M AY0|your Y AO0 R|his HH IH0 Z|its IH0 T S|our AA0 R|their DH EH0 R|i'm AY2 M|i'll AY2 L|it's IH0 T S
"""
_ENTRIES = (entry.split() for entry in _TABLE.strip().replace("\n", "|").split("|"))
WEAK: dict[str, tuple[str, ...]] = {word: tuple(phones) for word, *phones in _ENTRIES}
"""Lower-case word to phones."""

_BEFORE_VOWEL = {"the": ("DH", "IY0"), "to": ("T", "UW0")}


def weak_form(word: str, following: str | None) -> tuple[str, ...] | None:
    """Phones of `word` inside a phrase whose next phone is `following`; None for a word that keeps its stress."""
    if following is not None and is_vowel(following) and word in _BEFORE_VOWEL:
        return _BEFORE_VOWEL[word]
    return WEAK.get(word)
