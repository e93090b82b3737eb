"""Roman numerals behind names: Henry VIII, World War II, Chapter IV, Final Fantasy VII."""

from __future__ import annotations

import re

_RULERS = frozenset(
    """
Henry Louis Charles Elizabeth George James Edward William Richard John Paul Pius Benedict Leo Napoleon Catherine Peter
Nicholas Alexander Frederick Ivan Philip Ferdinand Mary Francis Gregory Innocent Clement Urban Julius Wilhelm Rudolf Leopold
Harald Olaf Haakon Christian Gustav Carl Alfonso Umberto Victor Constantine Ptolemy Ramesses Ramses Darius Cyrus Xerxes Mehmed
Selim Suleiman Otto Albert Baldwin Robert David Stephen Edmund Ethelred Pedro Boniface Sixtus Celestine Margaret Isabella
Maximilian Augustus Friedrich
""".split()
)
_THINGS = frozenset(
    """
War Part Chapter Volume Act Scene Book Section Phase Type Rocky Bowl Title Article Appendix Class Grade Mark Level Stage
Category Factor Schedule Division Tier Table Figure Step Episode Season Quarter Vol Lesson Unit Psalm Canto Apollo Saturn
Tudor Reich
""".split()
)
_NUMERAL = r"M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})"
_NAMED = re.compile(
    rf"\b([A-Z][a-z]+)\s((?=[IVXLCDM]){_NUMERAL})('s)?(?![\w'.-])(?=(?P<next>\s[A-Za-z']+)?)|\b([A-Z][a-z]+)\s((?=[IVXLCDM]){_NUMERAL})(?=\.(?:\s|$))"
)
_CENTURY = re.compile(rf"\b((?=[IVX]){_NUMERAL})(?=\s[Cc]entury\b)")
_LONE = re.compile(r"(?<![\w.'&-])(?=[IVX]{2})(?:X{0,3}(?:IX|IV|V?I{0,3}))(?![\w'&-])")
_ANY = re.compile(r"[IVXLCDM]")
_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_VERBS = frozenset("was is had has and of died reigned became ruled married began ended in to at who or the by on".split())
_LONE_LETTERS = frozenset(("IV", "XX", "XV", "XI"))


def speak_romans(text: str) -> str:
    if not _ANY.search(text):
        return text
    text = _NAMED.sub(_named, _CENTURY.sub(lambda m: _ordinal(m[1]), text))
    return _LONE.sub(lambda m: m.group() if m.group() in _LONE_LETTERS else _cardinal(m.group()), text)


def _named(found: re.Match[str]) -> str:
    name, numeral = found[1] or found[5], found[2] or found[6]
    owner = found[3] or ""
    following = (found["next"] or "").strip()
    ruler, thing = name in _RULERS, name in _THINGS
    if len(numeral) == 1:
        if not (thing or ruler):
            return found.group()
        # "Henry I think" is no king, and "Part I like" no part.
        if numeral == "I" and following and following not in _VERBS:
            return found.group()
    elif not (ruler or thing) and (set(numeral) - set("IVX") or numeral in ("XX", "XXX")):
        return found.group()
    return f"{name} the {_ordinal(numeral)}{owner}" if ruler else f"{name} {_cardinal(numeral)}{owner}"


def _value(numeral: str) -> str:
    total = 0
    for this, following in zip(numeral, [*numeral[1:], "I"], strict=True):
        total += -_VALUES[this] if _VALUES[this] < _VALUES[following] else _VALUES[this]
    return str(total)


def _cardinal(numeral: str) -> str:
    from .numbers import cardinal  # with the number words, which most texts do without

    return cardinal(_value(numeral))


def _ordinal(numeral: str) -> str:
    from .numbers import ordinal

    return ordinal(_value(numeral))
