"""Dates in words and in figures: March 3rd, 1998; the 4th of July; 2024-05-21; 5/21/2024."""

from __future__ import annotations

import re

from .calendar import DAY, MONTH, MONTHS, day_name, month_name, valid
from .numbers import ordinal, year

_START = r"(?<![\w.,/-])"
_STOP = r"(?![\w/-])(?!\.\d)"
_ISO = re.compile(rf"{_START}([12]\d{{3}})([-/.])(\d{{1,2}})\2(\d{{1,2}}){_STOP}")
_NUMERIC = re.compile(
    rf"{_START}(\d{{1,2}})([-/.])(\d{{1,2}})\2([12]\d{{3}}){_STOP}|{_START}(\d{{1,2}})(/)(\d{{1,2}})/(\d\d){_STOP}"
)
_SHORT = re.compile(
    rf"\b(on|by|until|till|since|before|after|due|from|to|through|dated)\s(\d{{1,2}})/(\d{{1,2}}){_STOP}", re.IGNORECASE
)
_DAY_ABBREVIATED = re.compile(rf"\b({DAY})(?=,?\s+(?:\d|{MONTH}\s*\d))")
_SUFFIX = r"(?:(?:st|nd|rd|th)\b)?"
_DAYS = rf"(?P<day>\d{{1,2}}){_SUFFIX}(?:\s?(?:-|to)\s?(?P<day2>\d{{1,2}}){_SUFFIX})?"
_MONTH_DAY = re.compile(
    rf"\b(?P<month>{MONTH})\s?{_DAYS}(?:(?P<comma>,?)\s?(?P<year>[12]\d{{3}})(?!\d))?"
    r"(?![\w:/%°-])(?![.,]\d)(?!\s?(?:%|°|[ap]\.?m\b|percent|people|times|degrees|miles))"
)
_DAY_MONTH = re.compile(
    rf"{_START}(?P<the>[Tt]he\s)?{_DAYS}(?P<of>\s?of)?[\s-](?P<month>{MONTH})(?:,?[\s-](?P<year>[12]\d{{3}})(?!\d))?(?!\w)"
)
_MONTH_YEAR = re.compile(rf"\b(?P<month>{MONTH})(?P<comma>,?)\s(?:of\s)?(?P<year>[12]\d{{3}})(?![\w:,])")


def speak_numeric_dates(text: str) -> str:
    """2024-05-21, 5/21/2024, 21.5.2024, 5/21/24, on 5/21."""
    text = _ISO.sub(lambda m: _date(m[4], m[3], m[1]) or m.group(), text)
    text = _NUMERIC.sub(_numeric, text)
    return _SHORT.sub(lambda m: f"{m[1]} {date}" if (date := _date(m[3], m[2], None)) else m.group(), text)


def speak_dates(text: str) -> str:
    """March 3rd, 1998; 3 March 1998; the 4th of July; Sat, May 4; Dec 2024."""
    text = _DAY_ABBREVIATED.sub(lambda m: day_name(m[1]), text)
    text = _DAY_MONTH.sub(_day_month, text)
    text = _MONTH_DAY.sub(_month_day, text)
    return _MONTH_YEAR.sub(lambda m: f"{month_name(m['month'])}{m['comma']} {year(m['year'])}", text)


def _date(day: str, month: str, of_year: str | None) -> str | None:
    if not valid(int(day), int(month)):
        return None
    words = f"{MONTHS[int(month) - 1]} {ordinal(day)}"
    return f"{words}, {year(of_year)}" if of_year else words


def _numeric(found: re.Match[str]) -> str:
    """Month first, as Americans write; day first where only that is a date, and between points."""
    first, mark, second, of_year = (found[i] or found[i + 4] for i in (1, 2, 3, 4))
    if len(of_year) == 2:
        of_year = ("20" if of_year < "50" else "19") + of_year
    if mark == ".":
        first, second = second, first
    return _date(second, first, of_year) or _date(first, second, of_year) or found.group()


def _month_day(found: re.Match[str]) -> str:
    if not all(1 <= int(day) <= 31 for day in (found["day"], found["day2"]) if day):
        return found.group()
    words = f"{month_name(found['month'])} {ordinal(found['day'])}"
    if found["day2"]:
        words += f" to {ordinal(found['day2'])}"
    return f"{words}{found['comma']} {year(found['year'])}" if found["year"] else words


def _day_month(found: re.Match[str]) -> str:
    if not all(1 <= int(day) <= 31 for day in (found["day"], found["day2"]) if day):
        return found.group()
    the = found["the"] or ("" if found["of"] else "the ")
    days = " to ".join(ordinal(day) for day in (found["day"], found["day2"]) if day)
    words = f"{the}{days} of {month_name(found['month'])}"
    return f"{words}, {year(found['year'])}" if found["year"] else words
