"""Years among numbers: decades, spans, and four figures that the words around them make a year."""

from __future__ import annotations

import re

from .calendar import MONTHS
from .numbers import year

_YEAR = r"(?:1[1-9]|20)\d\d"
_SHORT_YEAR = re.compile(r"(?:(?<![\w'])|(?<=\bQ[1-4]))'(\d\d)(?![\w'])")
_FREE = r"(?<![\w.,$£€])"
_LEAD = r"\b(?:the|their|his|her|my|your|our|in|early|mid|late|low|high|upper|lower)[\s-]"
_DECADE = re.compile(
    rf"{_FREE}(?P<century>1[1-9]|20)(?P<ten>\d0)'?s\b|{_FREE}'(?P<apostrophe>[1-9]0)s\b|{_FREE}(?<!')(?P<bare>[2-9]0)'s\b"
    rf"|(?P<lead>{_LEAD})(?P<led>[2-9]0)'?s\b",
    re.IGNORECASE,
)
# What is counted is no year: in 2000 steps.
_NOUNS = r"""
people men women children persons? steps? words? pieces? years? months? weeks? days? hours? minutes? seconds? miles? feet foot
inch(?:es)? yards? acres? meters? metres? kilo\w+ centi\w+ milli\w+ grams? pounds? tons? lit(?:er|re)s? gallons? dollars?
euros? yen cents? calories votes? items? pages? points? percent degrees times copies units watts? volts? bytes mega\w+ giga\w+
tera\w+ tickets? students users seats soldiers employees workers others residents islands species homes houses cars tonnes
square cubic different such million billion thousand
""".split()
_COUNTED = rf"(?!\s?(?:°|%)|[\s-](?:to\s\d+\s)?(?:{'|'.join(_NOUNS)}|or so|and a half)\b)"
_END = r"(?![\w:/°%$€£-]|[.,]\d)"
_YEAR_RANGE = re.compile(rf"(?<![\w.,/$€£-])(?P<from>{_YEAR})\s?[-/]\s?(?P<to>{_YEAR}|\d\d){_END}")
_TWO_YEARS = re.compile(rf"\b(between|from)\s({_YEAR})\s(and|to|until|till|through)\s({_YEAR}){_END}{_COUNTED}", re.IGNORECASE)
_AFTER = (
    r"(?:in|since|until|'?till?|by|from|before|after|during|circa|year|early|late|spring|summer|autumn|fall|winter|christmas|q[1-4]"
    r"|back\sto|as\sof|founded|established|born)"
)
_PART_OF = (
    rf"(?:{'|'.join(MONTHS)}|spring|summer|autumn|fall|winter|class|year|end|start|beginning|middle|half|crisis|war|revolution"
    r"|act|election|crash|constitution|fire)\sof"
)
_LED_YEAR = re.compile(
    rf"(?:\b(?<!\d\s)(?i:{_AFTER}|{_PART_OF})\s|\b(?i:mid|early|late|pre|post)-|\(|\bcopyright\s(?:\(c\)\s)?)"
    rf"(?:1[0-9]|20)\d\d(?=-[a-z]|{_END}){_COUNTED}"
)
_DETERMINED = re.compile(
    rf"\b(?i:the|an?|my|his|her|our|your|their|its|this)\s((?:19|20)\d\d)(?='s|\s(?!\w+s\b)\w|-[a-z]){_COUNTED}"
)
_FOLLOWED = re.compile(rf"(?<![\w.,$€£-])({_YEAR})(?='s\b|\s(?:AD|CE|BC|BCE|A\.D\.|B\.C\.)|,\s{_YEAR}\b)")
_OPENING = re.compile(rf"(?:^|(?<=[.!?] ))({_YEAR})(?=\s(?:was|is|will|saw|marked|brought|has|had|began|ended|turned)\b)")
_CLOSING = re.compile(r"(?<=, )((?:19|20)\d\d)(?=\s*(?:[.,;:!?)]|$))(?!,\d)")
_OPENERS = (
    "Only Over About Nearly Almost Some All At With Than Just Around Sold Exactly More Add To For And Or But No Number".split()
)
_NAMED = re.compile(rf"\b(?!(?:{'|'.join(_OPENERS)})\b)[A-Z][a-z]+\s((?:19|20)\d\d){_END}{_COUNTED}")
_FOUR = re.compile(r"\d{4}")


def speak_decades(text: str) -> str:
    """The 1990s, the '90s, the 80's, in her thirties; "30s" alone are seconds."""
    return _DECADE.sub(_decade, text)


def speak_years(text: str) -> str:
    """Spans of years, and four figures that the words around them make a year; all others stay numbers."""
    text = _SHORT_YEAR.sub(lambda m: f" {_within_century(m[1])}", text)
    if not _FOUR.search(text):
        return text
    text = _YEAR_RANGE.sub(_span, text)
    text = _TWO_YEARS.sub(lambda m: f"{m[1]} {year(m[2])} {m[3]} {year(m[4])}", text)
    for rule in (_LED_YEAR, _DETERMINED, _FOLLOWED, _OPENING, _CLOSING, _NAMED):
        text = rule.sub(lambda m: _FOUR.sub(lambda digits: year(digits.group()), m.group()), text)
    return text


def _decade(found: re.Match[str]) -> str:
    if found["century"]:
        words = year(found["century"] + found["ten"])
    else:
        words = _within_century(found["apostrophe"] or found["bare"] or found["led"])
    return f"{found['lead'] or ''}{words[:-1]}ies" if words.endswith("y") else f"{found['lead'] or ''}{words}s"


def _within_century(digits: str) -> str:
    """98: ninety eight; 05: oh five; 00: two thousand."""
    return year("2000") if digits == "00" else year("19" + digits)[len("nineteen ") :]


def _span(found: re.Match[str]) -> str:
    first, last = found["from"], found["to"]
    if len(last) == 2:
        if last <= first[2:]:
            return found.group()
        return f"{year(first)} to {_within_century(last)}"
    return f"{year(first)} to {year(last)}" if first < last else found.group()
