"""Names of months and days, and which dates exist."""

from __future__ import annotations

import re

MONTHS = "January February March April May June July August September October November December".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_SHORT_MONTHS = {**{month[:3]: month for month in MONTHS if month != "May"}, "Sept": "September"}
_SHORT_DAYS = {**{day[:3]: day for day in DAYS}, "Tues": "Tuesday", "Thur": "Thursday", "Thurs": "Thursday"}
_MONTH_OF = {**{month: month for month in MONTHS}, **_SHORT_MONTHS}
_DAY_OF = {**{day: day for day in DAYS}, **_SHORT_DAYS}

# Longest names first. "may" and "march" in small letters are verbs.
_NAMES = sorted(_MONTH_OF, key=len, reverse=True)
_SMALL = [name.lower() for name in MONTHS if name not in ("May", "March")]
MONTH = rf"(?:(?:{'|'.join([*_NAMES, *(name.upper() for name in _NAMES), *_SMALL])})\b\.?)"
DAY = rf"(?:(?:{'|'.join(sorted(_DAY_OF, key=len, reverse=True))})\b\.?)"

_SPAN = re.compile(rf"\b({DAY})\s?-\s?({DAY})(?!\w)|\b({MONTH})\s?-\s?({MONTH})(?!\w)")


def speak_spans(text: str) -> str:
    """Mon-Fri, January-March."""
    return _SPAN.sub(
        lambda m: f"{day_name(m[1])} to {day_name(m[2])}" if m[1] else f"{month_name(m[3])} to {month_name(m[4])}", text
    )


def month_name(written: str) -> str:
    return _MONTH_OF[written.rstrip(".").capitalize()]


def day_name(written: str) -> str:
    return _DAY_OF[written.rstrip(".").capitalize()]


def valid(day: int, month: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= (29, 31)[month != 2] - (month in (4, 6, 9, 11))
