"""How people read figures aloud: every usual reading of a written number, the likeliest first."""

from __future__ import annotations

import re

ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS = ("zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
SCALES = ("", "thousand", "million", "billion", "trillion")
MONTHS = frozenset((
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
    "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
))  # fmt: skip
_ORDINAL = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth", "twelve": "twelfth",
}  # fmt: skip

NUMBER_WORDS = frozenset([*ONES, *TENS, "hundred", *SCALES[1:], "oh"])

Reading = tuple[str, ...]

FIGURE = re.compile(
    r"(?P<money>[$£€])(?P<amount>\d[\d,]*(?:\.\d+)?)"
    r"|(?P<hour>\d{1,2}):(?P<minute>\d\d)(?![\d:])"
    r"|(?P<ordinal>\d[\d,]*)(?:st|nd|rd|th)\b"
    r"|(?P<decades>\d+)'?s\b"
    r"|(?P<whole>\d{1,3}(?:,\d{3})+|\d+)\.(?P<part>\d+)(?!\.?\d)"
    r"|(?P<number>\d{1,3}(?:,\d{3})+(?![\d,])|\d+)"
)
_UNITS = {"$": ("dollar", "cent"), "£": ("pound", "penny"), "€": ("euro", "cent")}


def cardinal(number: int) -> Reading:
    """109 is ("one", "hundred", "nine"): without "and", which listeners write or leave out. From 10**15 on digit by digit."""
    if number >= 10**15:
        return tuple(ONES[int(digit)] for digit in str(number))
    if number < 20:
        return (ONES[number],)
    if number < 100:
        return (TENS[number // 10], *((ONES[number % 10],) if number % 10 else ()))
    if number < 1000:
        return (ONES[number // 100], "hundred", *(cardinal(number % 100) if number % 100 else ()))
    out: list[str] = []
    for power in range(len(SCALES) - 1, -1, -1):
        group = number // 1000**power % 1000
        if group:
            out += [*cardinal(group), *([SCALES[power]] if power else [])]
    return tuple(out)


def ordinal(number: int) -> Reading:
    *before, last = cardinal(number)
    return (*before, _ORDINAL.get(last) or (last[:-1] + "ieth" if last.endswith("y") else last + "th"))


def plural(reading: Reading) -> Reading:
    last = reading[-1]
    return (*reading[:-1], last[:-1] + "ies" if last.endswith("y") else last + ("es" if last.endswith("x") else "s"))


def number(digits: str, *, after_month: bool = False) -> list[Reading]:
    """Readings of a plain row of digits: as a number, in pairs (years, rooms, times), digit by digit."""
    value = int(digits)
    readings: list[Reading] = []
    if after_month and 1 <= value <= 31:
        readings.append(ordinal(value))
    pairs = _pairs(digits)
    year = len(digits) == 4 and (1100 <= value < 2000 or 2010 <= value < 2100)
    if digits[0] == "0" or value >= 10**15:
        readings += [*_spelled(digits)]
    else:
        readings += [pairs, cardinal(value)] if year and pairs else [cardinal(value)]
        if len(digits) == 4 and value % 100 == 0 and value % 1000:
            readings.append((*cardinal(value // 100), "hundred"))
        readings += [*([pairs] if pairs else []), *_spelled(digits)]
        if 100 <= value < 200 or 1000 <= value < 2000:
            readings.append(("a", *cardinal(value)[1:]))
    return list(dict.fromkeys(readings))


def _pairs(digits: str) -> Reading | None:
    """745 as "seven forty five", 1998 as "nineteen ninety eight", 1905 as "nineteen oh five"."""
    if len(digits) not in (3, 4) or digits[0] == "0" or digits[-2:] == "00":
        return None
    tail = int(digits[-2:])
    return (*cardinal(int(digits[:-2])), *(("oh",) if tail < 10 else ()), *cardinal(tail))


def _spelled(digits: str) -> list[Reading]:
    one_by_one = tuple(ONES[int(digit)] for digit in digits)
    return [one_by_one, tuple("oh" if word == "zero" else word for word in one_by_one)]


def readings(found: re.Match[str], *, after_month: bool = False) -> list[Reading]:
    """Readings of a match of FIGURE. after_month: "March 3" is also said "march third"."""
    if found["money"]:
        return _money(*_UNITS[found["money"]], found["amount"].replace(",", ""))
    if found["hour"]:
        return _time(int(found["hour"]), found["minute"])
    if found["ordinal"]:
        return [ordinal(int(found["ordinal"].replace(",", "")))]
    if found["decades"]:
        return [plural(reading) for reading in number(found["decades"])]
    if found["part"]:
        whole, part = number(found["whole"].replace(",", ""))[0:1], found["part"]
        tails = [*_spelled(part), *number(part)]
        joined = [(*head, "point", *tail) for head in whole for tail in tails]
        return list(dict.fromkeys([*joined, *_spelled(found["whole"].replace(",", "") + part)]))
    digits = found["number"]
    if "," in digits:
        value = int(digits.replace(",", ""))
        return [cardinal(value), *number(str(value))]
    return number(digits, after_month=after_month)


def _money(unit: str, small: str, amount: str) -> list[Reading]:
    whole, _, part = amount.partition(".")
    head = (*cardinal(int(whole)), unit + ("" if int(whole) == 1 else "s"))
    if not part or not int(part):
        return [head, (*cardinal(int(whole)), unit)]
    if len(part) != 2:
        return [(*cardinal(int(whole)), "point", *tail, unit + "s") for tail in _spelled(part)]
    cents = cardinal(int(part))
    smalls = small if int(part) == 1 else {"penny": "pence"}.get(small, small + "s")
    return [(*head, *cents, smalls), (*head, *cents), (*cardinal(int(whole)), *cents)]


def _time(hour: int, minute: str) -> list[Reading]:
    head, value = cardinal(hour), int(minute)
    if not value:
        return [(*head, "oclock"), head, (*head, "hundred")]
    if value < 10:
        return [(*head, "oh", *cardinal(value)), (*head, "zero", *cardinal(value))]
    return [(*head, *cardinal(value))]
