"""Amounts of money: $19.50, 5 €, £3.20, US$5, 20 EUR, $3.5 million, $5-10, 50¢, $5/month."""

from __future__ import annotations

import re

from .nouns import attributive
from .numbers import NUMBER, cardinal, number
from .tables import table

# Sign or code: one, several, one hundredth, several hundredths ("" if nobody counts them).
_SIGNS = {
    "$": ("dollar", "dollars", "cent", "cents"),
    "€": ("euro", "euros", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"),
    "¥": ("yen", "yen", "", ""),
    "₹": ("rupee", "rupees", "paisa", "paise"),
    "₩": ("won", "won", "", ""),
    "₽": ("ruble", "rubles", "kopek", "kopeks"),
    "₺": ("lira", "lira", "", ""),
    "₿": ("bitcoin", "bitcoins", "", ""),
    "₪": ("shekel", "shekels", "", ""),
    "₫": ("dong", "dong", "", ""),
    "₴": ("hryvnia", "hryvnias", "", ""),
    "₦": ("naira", "naira", "", ""),
    "₱": ("peso", "pesos", "", ""),
    "฿": ("baht", "baht", "", ""),
}
_CODES = {
    "USD": ("U S dollar", "U S dollars", "cent", "cents"),
    "CAD": ("Canadian dollar", "Canadian dollars", "cent", "cents"),
    "AUD": ("Australian dollar", "Australian dollars", "cent", "cents"),
    "EUR": _SIGNS["€"],
    "GBP": ("British pound", "British pounds", "penny", "pence"),
    "JPY": _SIGNS["¥"],
    "CNY": ("yuan", "yuan", "", ""),
    "CHF": ("Swiss franc", "Swiss francs", "", ""),
    "INR": _SIGNS["₹"],
}
_COUNTRIES = {
    "US": "U S",
    "C": "Canadian",
    "CA": "Canadian",
    "A": "Australian",
    "AU": "Australian",
    "NZ": "New Zealand",
    "HK": "Hong Kong",
}
_SIZES = table(
    """
k: thousand | m: million | mn: million | mm: million | b: billion | bn: billion | t: trillion | tn: trillion
"""
)
LEFTOVER = {**{sign: names[0] for sign, names in _SIGNS.items()}, "¢": "cents"}
"""What a sign without an amount is called."""

_SIGN = "[" + "".join(_SIGNS) + "]"
_SIZE = r"(?P<size>\s?(?:hundred|thousand|million|billion|trillion)\b|(?:[kKmMbBtT]|[bBmMtT][nN]|MM)\b)?"
_REST = rf"(?P<number>{NUMBER})(?:\s?-\s?{_SIGN}?(?P<upper>{NUMBER}))?{_SIZE}(?P<per>\s?/\s?[A-Za-z]++)?"
_BEFORE = re.compile(
    rf"(?P<minus>(?<![\w.)])-\s?)?(?<![A-Za-z])(?:(?P<country>US|CA?|AU?|NZ|HK)?(?P<sign>{_SIGN})(?P<minus2>-)?\s?){_REST}(?P<plus>\+)?"
)
_CODE_BEFORE = re.compile(rf"\b(?P<sign>{'|'.join(_CODES)})\s?{_REST}")
_AFTER = re.compile(
    rf"(?P<minus>(?<![\w.)])-)?(?<![\w.,])(?P<number>{NUMBER}(?:,\d\d(?!\d))?)(?:-(?P<upper>{NUMBER}))?(?P<size>\s(?:thousand|million|billion))?"
    rf"\s?(?P<sign>{_SIGN}|(?:{'|'.join(_CODES)})\b)(?P<per>\s?/\s?[A-Za-z]++)?"
)
_CENTS = re.compile(rf"(?<![\w.,])(?P<number>{NUMBER})\s?¢")
_PENCE = re.compile(r"(?<![\w.,])(\d{1,2})p\b")
_PER = table(
    """
hr: hour | h: hour | mo: month | yr: year | y: year | wk: week | min: minute | kg: kilogram | lb: pound | gal: gallon
sqft: square foot | GB: gigabyte | kWh: kilowatt hour | m: month | d: day
"""
)


def speak_money(text: str) -> str:
    if any(sign in text for sign in LEFTOVER):
        text = _BEFORE.sub(_money, text)
    text = _AFTER.sub(_money, _CODE_BEFORE.sub(_money, text))
    text = _CENTS.sub(lambda m: f"{number(m['number'])} {'cent' if m['number'] == '1' else 'cents'}", text)
    return _PENCE.sub(lambda m: f"{cardinal(m[1])} {'penny' if m[1] == '1' else 'pence'}", text)


def _money(found: re.Match[str]) -> str:
    groups = found.groupdict()
    names = _SIGNS.get(found["sign"]) or _CODES[found["sign"]]
    country = _COUNTRIES.get(groups.get("country") or "", "")
    figure = re.sub(r",(?=\d\d$)", ".", found["number"])  # 19,50 €
    only_one = attributive(found)
    size = (found["size"] or "").strip()
    size = _SIZES.get(size.lower(), size)
    words = _amount(figure, found["upper"], size, names, country, only_one)
    minus = "minus " if groups.get("minus") or groups.get("minus2") else ""
    per = (found["per"] or "").replace("/", "").strip()
    tail = f" per {_PER.get(per, per)}" if per else ""
    return f"{minus}{words}{' plus' if groups.get('plus') else ''}{tail}"


def _amount(figure: str, upper: str | None, size: str, names: tuple[str, str, str, str], country: str, only_one: bool) -> str:
    one, several, cent, cents = names
    if country:
        one, several = f"{country} {one}", f"{country} {several}"
    if only_one:
        several, cents = one, cent
    whole, _, part = figure.partition(".")
    if upper or size or len(part) > 2 or (part and not cent):
        words = " to ".join(number(n) for n in (figure, upper) if n)
        return f"{words} {size} {several}" if size else f"{words} {several}"
    main = f"{cardinal(whole)} {one if whole == '1' else several}"
    hundredths = int(part.ljust(2, "0")) if part else 0
    if not hundredths:
        return main
    small = f"{cardinal(str(hundredths))} {cent if hundredths == 1 else cents}"
    return small if whole.strip("0") == "" else f"{main} and {small}"
