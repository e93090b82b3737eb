"""Everything that has a digit, from the most particular form to the plain number."""

from __future__ import annotations

import re
from collections.abc import Callable

from .dates import speak_dates, speak_numeric_dates
from .fractions import speak_fractions
from .mixed import speak_mixed
from .money import speak_money
from .numbers import NUMBER, cardinal, code, digit_by_digit, number, ordinal, pairs, spell
from .tables import table
from .telephone import speak_telephone
from .times import speak_times
from .units import speak_units
from .years import speak_decades, speak_years

_LABELS = table(
    """
no: number | nos: numbers | p: page | pp: pages | vol: volume | vols: volumes | ch: chapter | fig: figure | figs: figures
sec: section | art: article | eq: equation | para: paragraph | ver: version | v: version | approx: approximately | ca: circa
op: opus | pt: part | apt: apartment | ste: suite | tel: telephone | ext: extension | st: saint | est: established | min: minimum
max: maximum
"""
)
_LABEL = re.compile(rf"\b({'|'.join(sorted(_LABELS, key=len, reverse=True))})\.\s?(?=[#$€£]?\d)", re.IGNORECASE)
_VERSION_LETTER = re.compile(r"\b[vV](?=\d++\.\d)")
_HASH = re.compile(r"#\s?(?=\d)")
_PERCENT = re.compile(r"(?<=\d)\s?%")
_TIMESTAMP = re.compile(r"(?<=\d\d-\d\d)T(?=\d\d:\d\d)")
_STREET = (
    r"(?:Street|Avenue|Road|Boulevard|Drive|Lane|Court|Place|Square|Way|Parkway|Highway|Terrace"
    r"|(?:St|Ave|Rd|Blvd|Dr|Ln|Ct|Pl|Sq|Pkwy|Hwy)\b)"
)
_HOUSE = re.compile(rf"(?<![\w.,$€£#-])(\d{{4}})(?=\s(?:[NSEW]\.?\s)?(?:[A-Z][a-z]+\s|\d+(?:st|nd|rd|th)\s){{1,3}}{_STREET})")
_SERIAL = re.compile(
    r"\b((?:Flight|Room|Suite|Apartment|Route|Highway|Interstate|Boeing|Airbus|Bus|Train|Channel|Model|flight|room|route|highway)\s)"
    r"(\d{3,4})(?![\w,:/-])(?!\.\d)"
)
_SCIENTIFIC = re.compile(rf"(?<![\w.,])({NUMBER})[eE]([+-]?)(\d{{1,3}})(?!\w)")
_POWER = re.compile(r"(?<=[\w)])\s?\^\s?\(?(-?)(\d+)\)?")
_OPERATOR = re.compile(r"(?<=\d)\s?([+*])\s?(?=\d)|(?<=\d)\s([/-])\s(?=\d[\d.,]*\s*=)")
_OPERATORS = {"+": " plus ", "*": " times ", "/": " divided by ", "-": " minus "}
_ORDINAL = re.compile(r"(?<![\w.,])(\d{1,3}(?:,\d{3})++|\d++)(?:st|nd|rd|th)\b", re.IGNORECASE)
_DOTTED = re.compile(r"(?<![\w.])\d++(?:\.\d++){2,}+")
_RANGE = re.compile(rf"(?<![\w.,-])({NUMBER})\s?-\s?({NUMBER})(?![\w-])")
_SIGN = re.compile(r"(?<![\w.)%\]-])([+-])(?=\.?\d)")
_PART = re.compile(r"(?<!\w)\.(\d++)")
_APPROXIMATE = re.compile(r"~\s?(?=[\d$€£])")
_NUMBER = re.compile(NUMBER)


def speak_figures(text: str, known: Callable[[str], bool] | None) -> str:
    """No digit is left. Capitals, other symbols and marks are left to later steps."""
    text = _TIMESTAMP.sub(" ", text)
    text = _APPROXIMATE.sub("about ", text)
    text = _LABEL.sub(_label, text)
    text = speak_numeric_dates(text)
    text = speak_telephone(text)
    text = speak_dates(text)
    text = speak_times(text)
    text = speak_money(text)
    text = _HASH.sub(" number ", _PERCENT.sub(" percent", text))
    text = _OPERATOR.sub(lambda m: _OPERATORS[m[1] or m[2]], text)
    text = _HOUSE.sub(lambda m: pairs(m[1]), text)
    text = _SERIAL.sub(lambda m: m[1] + code(m[2]), text)
    text = speak_decades(text)
    text = speak_units(text)
    text = speak_years(text)
    text = _SCIENTIFIC.sub(
        lambda m: f"{number(m[1])} times ten to the power of {'minus ' if m[2] == '-' else ''}{cardinal(m[3])}", text
    )
    text = _POWER.sub(_power, text)
    text = _ORDINAL.sub(lambda m: ordinal(m[1]), text)
    text = speak_fractions(text)
    text = _VERSION_LETTER.sub("version ", text)
    text = _DOTTED.sub(_dotted, text)
    text = _RANGE.sub(lambda m: f"{number(m[1])} to {number(m[2])}", text)
    text = _SIGN.sub(lambda m: "minus " if m[1] == "-" else "plus ", text)
    text = speak_mixed(text, known)
    text = _PART.sub(lambda m: f"point {digit_by_digit(m[1])}", text)
    return _NUMBER.sub(_plain, text)


def _label(found: re.Match[str]) -> str:
    word = _LABELS[found[1].lower()]
    return f"{word.capitalize() if found[1][0].isupper() else word} "


def _power(found: re.Match[str]) -> str:
    if found[1] or found[2] not in ("2", "3"):
        return f" to the power of {'minus ' if found[1] else ''}{cardinal(found[2])}"
    return " squared" if found[2] == "2" else " cubed"


def _dotted(found: re.Match[str]) -> str:
    """Versions have points, addresses of machines dots."""
    parts = found.group().split(".")
    word = " dot " if len(parts) == 4 and all(len(part) <= 3 for part in parts) else " point "
    after = found.string[found.end() : found.end() + 1]
    return word.join(cardinal(part) for part in parts) + (" " if after.isalnum() else "")


def _plain(found: re.Match[str]) -> str:
    """Ten bare digits and more are an identifier rather than an amount, unless they are round."""
    figure, text = found.group(), found.string
    words = spell(figure) if figure.isdigit() and len(figure) >= 10 and not figure.endswith("000") else number(figure)
    before, after = text[found.start() - 1 : found.start()], text[found.end() : found.end() + 1]
    return f"{' ' if before.isalnum() else ''}{words}{' ' if after.isalnum() else ''}"
