"""Telephone, card and code numbers, which are read digit by digit."""

from __future__ import annotations

import re

from .numbers import spell

_NUMBERS = re.compile(
    r"(?<![\w.,+-])(?:"
    r"\+\d{1,3}(?:[ .-]?\(?\d{1,6}\)?){1,6}"  # +44 20 7946 0958
    r"|(?:\+?1[ .-]?)?\(\d{3}\) ?\d{3}[ .-]\d{4}"  # (555) 123-4567
    r"|(?:1[ .-])?\d{3}([ .-])\d{3}\1\d{4}"  # 1-800-555-0199
    r"|0\d{2,4} \d{3,4}(?: \d{3,4})?"  # 020 7946 0958
    r"|\d{3}-\d{4}"  # 555-0199
    r"|\d{4}([ -])\d{4}\2\d{4}\2\d{4}"  # a card
    r"|\d{1,12}(?:-\d{1,12}){2,12}"  # 123-45-6789
    r")(?![\w-])(?!\.\d)"
)
_CODES = re.compile(
    r"\b(?P<lead>(?:pin|code|password|passcode|extension|ext\.?|zip|postcode|dial|call|account|serial|phone|tel\.?|id|fax)"
    r"(?:\s(?:number|code|no\.?|is|at|me\sat|us\sat)){0,2}[:#]?\s?#?)(?P<digits>\d{3,})(?![\w-])(?![.,:]\d)",
    re.IGNORECASE,
)
_STATE_ZIP = re.compile(r"(?<=\b[A-Z]{2} )(\d{5})(-\d{4})?(?![\w,-])")
_DIGITS = re.compile(r"\d+")
_WHERE = {"ext": "extension", "tel": "telephone"}


def speak_telephone(text: str) -> str:
    text = _NUMBERS.sub(_number, text)
    text = _STATE_ZIP.sub(_number, text)
    return _CODES.sub(_code, text)


def _number(found: re.Match[str]) -> str:
    written = found.group()
    if written.startswith("+") and sum(c.isdigit() for c in written) < 7:
        return written
    groups = ", ".join(spell(digits) for digits in _DIGITS.findall(written))
    return f"plus {groups}" if written.startswith("+") else groups


def _code(found: re.Match[str]) -> str:
    lead = re.sub(r"^(ext|tel)\b\.?", lambda m: _WHERE[m[1].lower()], found["lead"], flags=re.IGNORECASE)
    lead = lead.replace("#", "").rstrip()
    return f"{lead} {spell(found['digits'])}"
