"""Letter names, and when a single capital is one."""

from __future__ import annotations

from .phones import MARKS

_TABLE = """
A EY1|B B IY1|C S IY1|D D IY1|E IY1|F EH1 F|G JH IY1|H EY1 CH|I AY1|J JH EY1|K K EY1|L EH1 L|M EH1 M|N EH1 N|O OW1|P P IY1
Q K Y UW1|R AA1 R|S EH1 S|T T IY1|U Y UW1|V V IY1|W D AH1 B AH0 L Y UW0|X EH1 K S|Y W AY1|Z Z IY1
"""
NAMES: dict[str, tuple[str, ...]] = {
    letter: tuple(phones.split())
    for letter, _, phones in (entry.partition(" ") for entry in _TABLE.strip().replace("\n", "|").split("|"))
}
"""Upper-case letter to the phones of its name."""

LETTER_A = "A'"
"""The letter A where a plain "A" would be read as the article, such as at the start of "A four paper"."""


def letter_name(before: str | None, token: str, after: str | None) -> tuple[str, ...] | None:
    """Phones of a token that is the name of a letter; None for every other word.

    before, after: the neighbouring words or marks, None at the ends of the text. A single capital is a letter, except the word I
    away from other letters and the article: an A that is followed by a word and begins its phrase, or stands in a title.
    """
    if token == LETTER_A:
        return NAMES["A"]
    if not _is_capital(token):
        return None
    if token == "A" and after is not None and after not in MARKS and not _is_capital(after):
        inside = before is not None and before not in MARKS
        return NAMES["A"] if _is_capital(before) or (inside and after[0].islower()) else None
    if token == "I" and not (_is_capital(before) or _is_capital(after)):
        return None
    return NAMES[token]


def _is_capital(token: str | None) -> bool:
    return token is not None and len(token) == 1 and token in NAMES
