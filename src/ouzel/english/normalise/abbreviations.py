"""Abbreviations, initials and dotted letters: Dr., St., etc., e.g., a.m., U.S., J. R. R. Tolkien."""

from __future__ import annotations

import re

from .spelling import spelled
from .tables import table

# Before a name: the point never ends a sentence.
_TITLES = table(
    """
Mr: Mister | Mrs: Missus | Ms: Ms | Messrs: Messieurs | Prof: Professor | Sgt: Sergeant | Capt: Captain | Lt: Lieutenant
Cmdr: Commander | Mt: Mount | Hon: Honorable | Dr: Doctor
"""
)
_POINTED_TITLES = table(
    """
Rev: Reverend | Gen: General | Col: Colonel | Gov: Governor | Sen: Senator | Rep: Representative | Pres: President
Maj: Major | Fr: Father | Ft: Fort | Adm: Admiral | Supt: Superintendent
"""
)
# Anywhere: the point ends a sentence if a new one follows.
_WORDS = table(
    """
etc: et cetera | vs: versus | jr: junior | sr: senior | ltd: limited | corp: corporation | dept: department | bros: brothers
ave: avenue | blvd: boulevard | approx: approximately | govt: government | misc: miscellaneous | mfg: manufacturing
intl: international | hwy: highway | pkwy: parkway | hrs: hours | mins: minutes | lbs: pounds | tsp: teaspoon
tbsp: tablespoon | asap: as soon as possible
"""
)
_POINTED = table(
    """
inc: incorporated | co: company | rd: road | apt: apartment | est: established | assn: association | assoc: associates
univ: university | tel: telephone | max: maximum | min: minimum | sq: square | nos: numbers | vol: volume | ed: edition
al: al | viz: namely | cf: compare
"""
)
_BEFORE_NAMES = frozenset(("vs", "vol", "sq", "cf", "viz", "jr", "sr", "nos"))
_MONTHS = table(
    """
Jan: January | Feb: February | Apr: April | Aug: August | Sept: September | Oct: October | Nov: November | Dec: December
"""
)
_LATIN = re.compile(r"(?<![\w.])(?:(?P<eg>e\.\s?g\b)|(?P<ie>i\.\s?e\b))\.?", re.IGNORECASE)
_TITLE = re.compile(rf"\b({'|'.join(_TITLES)})\b\.?|\b({'|'.join(_POINTED_TITLES)})\.(?=\s[A-Z])")
_WORD = re.compile(rf"(?<!['\w])(?:({'|'.join(_WORDS)})\b|({'|'.join(_POINTED)})(?=\.))(?!')(\.?)", re.IGNORECASE)
_MONTH = re.compile(rf"\b({'|'.join(_MONTHS)})\b(?!')(\.)")
_STREET_OR_SAINT = re.compile(r"\bS[Tt]\b(?!')\.?")
_DOTTED = re.compile(r"(?<![A-Za-z.'])(?:[A-Za-z]\.\s?){1,20}[A-Za-z]\b\.?(?!\w)|(?<![A-Za-z.'])Ph\.?\s?D\b\.?")
_INITIALS = re.compile(r"(?<![A-Za-z.'])(?:[A-Z]\.\s?){1,9}(?=[A-Z][a-z'])")
_OKAY = re.compile(r"\b(?:O\.\s?K\.|OK|ok|Ok)(?![A-Za-z])")
_AND = re.compile(r"(?<=[A-Za-z])\s?'n'?\s(?=[A-Za-z])|\s&c\b\.?")
_PREVIOUS = re.compile(r"([A-Za-z']+)\s*$")
_STARTERS = frozenset(
    """
He She It They We I You The This That These Those There Here But And So Or In On At If When While What Who Where Why How My
Our His Her Their Its Your A An No Yes Not Then Now After Before As For With From To By Is Are Was Were Do Does Did Can Could
Will Would Please All Some Many Most One Each Every Both However Once Since Although Because Let
""".split()
)
TAKE_LETTERS = frozenset(
    """
plan vitamin group class grade type hepatitis section part exhibit appendix option team room gate terminal building block
level point answer figure table series schedule letter letters version step item row column hall unit zone line wing
""".split()
)
_NEXT = re.compile(r"\s+(['\"(]*)([A-Za-z']+)")


def speak_abbreviations(text: str) -> str:
    text = _OKAY.sub(lambda m: "okay" + (_stop(m) if m.group().endswith(".") else ""), text)
    text = _AND.sub(lambda m: " and " if "n" in m.group() else " et cetera ", text)
    text = _STREET_OR_SAINT.sub(_street_or_saint, text)
    text = _TITLE.sub(_title, text)
    text = _WORD.sub(_word, text)
    if "." not in text:
        return text
    text = _LATIN.sub(lambda m: "for example" if m["eg"] else "that is", text)
    text = _MONTH.sub(lambda m: _MONTHS[m[1]] + _stop(m), text)
    text = _INITIALS.sub(_initials, text)
    return _DOTTED.sub(_dotted, text)


def _stop(found: re.Match[str], *, any_capital: bool = True) -> str:
    """The point of an abbreviation, if it ends a sentence as well: at the end, before a new line's point or a capital."""
    text, end = found.string, found.end()
    if not text[end:].strip():
        return "."
    following = _NEXT.match(text, end)
    if not following:
        return ""
    word = following[2]
    return "." if word in _STARTERS or (any_capital and word[0].isupper() and len(word) > 1) else ""


def _title(found: re.Match[str]) -> str:
    if found[2]:
        return _POINTED_TITLES[found[2]]
    if found[1] == "Dr" and _is_place(found):
        return "Drive" + (_stop(found) if found.group().endswith(".") else "")
    return _TITLES[found[1]] + ("" if found.string[found.end() :].strip() else found.group()[len(found[1]) :])


def _street_or_saint(found: re.Match[str]) -> str:
    if found.group()[1] == "T":
        return found.group()
    street = _is_place(found) or not _followed_by_name(found)
    return "Street" + (_stop(found) if found.group().endswith(".") else "") if street else "Saint"


def _is_place(found: re.Match[str]) -> bool:
    """Behind a name or an ordinal, and not before a name: Oak St., 5th St., Ocean Dr."""
    before = _PREVIOUS.search(found.string[max(0, found.start() - 40) : found.start()])
    named = before is not None and (before[1][0].isupper() or before[1].endswith(("th", "first", "second", "third")))
    return named and not _followed_by_name(found)


def _followed_by_name(found: re.Match[str]) -> bool:
    following = _NEXT.match(found.string, found.end())
    return following is not None and following[2][0].isupper() and following[2] not in _STARTERS


def _word(found: re.Match[str]) -> str:
    written = found[1] or found[2]
    words = _WORDS.get(written.lower()) or _POINTED[written.lower()]
    if found[2] and not (
        written[0].isupper() or written in ("max", "min", "approx", "al", "viz", "cf", "vol", "sq", "tel", "nos")
    ):
        return found.group()
    if written[0].isupper():
        words = words[0].upper() + words[1:]
    return words + (_stop(found, any_capital=written.lower() not in _BEFORE_NAMES) if found[3] else "")


def _initials(found: re.Match[str]) -> str:
    """Initials before a name; a single letter may also end a sentence: "Plan B. Then", "You and I. We"."""
    text = found.string
    letters = re.findall("[A-Z]", found.group())
    following = re.match(r"[A-Za-z]+", text[found.end() : found.end() + 20])
    before = _PREVIOUS.search(text[max(0, found.start() - 40) : found.start()])
    if len(letters) == 1:
        word = before[1] if before else ""
        alone = len(word) == 1 and word.isupper()
        starts = following is not None and following.group() in _STARTERS
        if alone or starts or word.lower() in TAKE_LETTERS or (letters[0] == "I" and word.islower()):
            return found.group()
    point = ". " if len(letters) > 1 and following is not None and following.group() in _STARTERS else " "
    return spelled("".join(letters)) + point


def _dotted(found: re.Match[str]) -> str:
    """Letters with points between them; "I. A" across a sentence end is no such thing."""
    written = found.group()
    letters = re.findall("[A-Za-z]", written)
    if written.count(".") < 2 and not written.startswith("Ph"):
        close = re.fullmatch(r"[A-Za-z]\.[A-Za-z]", written)
        if not close:
            return written
    before = _PREVIOUS.search(found.string[max(0, found.start() - 40) : found.start()])
    if ". " in written and before is not None and len(before[1]) == 1 and before[1].isupper():
        return written
    return spelled("".join(letters)) + (_stop(found, any_capital=False) if written.endswith(".") else "")
