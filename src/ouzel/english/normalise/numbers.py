"""Digits to words."""

from __future__ import annotations

from functools import lru_cache

LONGEST = 15
"""Whole numbers with more digits are read digit by digit."""

# A figure: thousands may be set off by commas (1,200 or 1,00,000), the rest by a point.
NUMBER = r"(?>\d{1,3}(?:,\d{2,3}){0,12},\d{3}(?!\d)|\d++)(?:\.\d++)?"
_DIGITS = "zero one two three four five six seven eight nine".split()


def cardinal(digits: str) -> str:
    """Words of a whole number, commas allowed; digit by digit if it is very long or begins with a zero."""
    plain = digits.replace(",", "")
    if len(plain) > LONGEST or (len(plain) > 1 and plain[0] == "0"):
        return spell(plain)
    return _words(int(plain), "cardinal")


def ordinal(digits: str) -> str:
    plain = digits.replace(",", "").lstrip("0") or "0"
    if len(plain) > LONGEST:
        return spell(plain) + "th"
    return _words(int(plain), "ordinal")


def year(digits: str) -> str:
    """1998: nineteen ninety eight. 1905: nineteen oh five. 2005: two thousand and five."""
    return _words(int(digits), "year")


def spell(digits: str) -> str:
    """Digit by digit, long runs in groups of three to be followed."""
    if len(digits) <= 6:
        return digit_by_digit(digits)
    ends = [*range(3, len(digits) - 1, 3), len(digits)]
    return ", ".join(digit_by_digit(digits[a:b]) for a, b in zip([0, *ends], ends, strict=False))


def digit_by_digit(digits: str) -> str:
    return " ".join(_DIGITS[int(d)] for d in digits)


def number(figure: str) -> str:
    """Words of a `NUMBER`, with or without a decimal part."""
    whole, _, part = figure.partition(".")
    words = cardinal(whole)
    return f"{words} point {digit_by_digit(part)}" if part else words


def code(digits: str) -> str:
    """A number inside a name such as A320, RTX4090 or covid19: in pairs where people do so."""
    if len(digits) <= 2 or digits.strip("0") == "" or digits[0] == "0":
        return cardinal(digits)
    if len(digits) == 3:
        return cardinal(digits) if digits.endswith("00") else f"{cardinal(digits[0])} {pair(digits[1:])}"
    if len(digits) == 4:
        return cardinal(digits) if digits[1:3] == "00" else pairs(digits)
    return spell(digits)


def pairs(digits: str) -> str:
    """Four digits as streets and flights read them: 1600 sixteen hundred, 1549 fifteen forty nine."""
    if digits[1:] == "000":
        return cardinal(digits)
    return f"{cardinal(digits[:2].lstrip('0') or '0')} {'hundred' if digits[2:] == '00' else pair(digits[2:])}"


def pair(digits: str) -> str:
    """Two digits after others: 05 is oh five."""
    return f"oh {_DIGITS[int(digits[1])]}" if digits[0] == "0" else cardinal(digits)


@lru_cache(maxsize=1024)
def _words(value: int, kind: str) -> str:
    # Importing it takes longer than all other work on a sentence, so texts without figures do without.
    from num2words import num2words

    return str(num2words(value, lang="en", to=kind)).replace("-", " ").replace(",", "")
