"""Any text to ASCII plus the few signs that later steps read; what has no reading in English is listed."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

CURRENCY_SIGNS = "$€£¥₹₩₽₺₿₪₫₴₦₱฿¢"
OHM = "\u2126"  # the sign, not the Greek letter
MICRO = "\u00b5"
OTHER_SIGNS = "°" + MICRO + OHM
_KEPT = frozenset(CURRENCY_SIGNS + OTHER_SIGNS)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")
_LINE_BREAK = re.compile(r"\s*[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*")
_SPACE = re.compile(r"\s+")
_MINUS = re.compile(r"(?<=[\w)])\s?\u2212\s?(?=[\w(])")
_TIMES = re.compile(r"(?<=\d)×(?=\d)")
_DIGIT_GROUPS = re.compile(r"(?<=\d)[\u202f\u2009](?=\d{3}(?!\d))")
_POWERS = re.compile(r"(?<=\^[\d-])\^(?=\d)")
_SPACED_THOUSANDS = re.compile(r"(?<![\d.,-])(?<![\d.,-] )([1-9]\d{0,2})((?: 000)+)(?![\d.,-]| \d)")
_GREEK_LETTER = re.compile(r"(?<![\u0370-\u03ff\u1f00-\u1fff])[α-ωΑ-Ω](?![\u0370-\u03ff\u1f00-\u1fff])")
_GREEK = dict(
    zip(
        "αβγδεζηθικλμνξοπρστυφχψως",
        """
alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau upsilon phi chi psi omega
sigma
""".split(),
        strict=True,
    )
)
_TABLE = {
    **dict.fromkeys("‘’‚‛′ʼʻ´`", "'"),
    **dict.fromkeys("“”„‟″«»‹›「」『』《》", '"'),
    **dict.fromkeys("‐‑‒–", "-"),
    **dict.fromkeys("—―", " -- "),
    **dict.fromkeys("•‣▪●◦∙·・、，،、", ", "),
    **dict.fromkeys("。।॥．۔", ". "),
    **dict.fromkeys("？؟⁇", "? "),
    **dict.fromkeys("；؛", "; "),
    **dict.fromkeys("¿¡†‡", ""),
    **{c: f" {words} " for c, words in (
        ("×", "times"), ("÷", "divided by"), ("±", "plus or minus"), ("≈", "approximately"), ("≤", "less than or equal to"),
        ("≥", "greater than or equal to"), ("≠", "not equal to"), ("∞", "infinity"), ("√", "square root of"), ("→", "to"),
        ("⇒", "to"), ("©", "copyright"), ("®", "registered"), ("™", "trademark"), ("§", "section"), ("¶", "paragraph"),
        ("№", "number"), ("‰", "per thousand"),
    )},
    "！": "! ", "：": ":", "…": "...", "⁄": "/", "−": "-",
    "ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D",
    "ð": "th", "Ð": "Th", "þ": "th", "Þ": "Th", "ı": "i", "ħ": "h", "Ħ": "H", "ŋ": "ng", "Ŋ": "Ng", "ŧ": "t", "Ŧ": "T", "ĸ": "k",
}  # fmt: skip


def to_ascii(text: str) -> tuple[str, tuple[str, ...]]:
    """The text in ASCII and `CURRENCY_SIGNS`, `OTHER_SIGNS`, one space between words; and the characters with no reading.

    Accents go (café to cafe), digits of any script become figures, line breaks become full stops, as they are boundaries.
    """
    unspeakable: dict[str, None] = {}
    if not text.isascii():
        text = _DIGIT_GROUPS.sub("", _MINUS.sub(" minus ", _TIMES.sub("x", text)))
        text = _GREEK_LETTER.sub(_greek, text)
        parts = []
        for c in text:
            plain = c if c.isascii() else _plain(c)
            if plain is None:
                unspeakable[c] = None
                plain = " "
            parts.append(plain)
        text = _POWERS.sub("", "".join(parts))
    text = _LINE_BREAK.sub(_line_break, _CONTROL.sub("", text).strip())
    text = _SPACED_THOUSANDS.sub(lambda m: m[1] + m[2].replace(" ", ""), _SPACE.sub(" ", text))
    return text, tuple(unspeakable)


@lru_cache(maxsize=2048)
def _plain(c: str) -> str | None:
    """What one character beyond ASCII stands for; "" for the invisible ones; None if English has no reading for it."""
    if c in _KEPT:
        return c
    if c in _TABLE:
        return _TABLE[c]
    if c.isspace():
        return "\n" if c in "\x85\u2028\u2029" else " "
    if c.isdecimal():
        return str(unicodedata.decimal(c))
    kind = unicodedata.category(c)
    if kind in ("Mn", "Mc", "Me", "Cf", "Cc", "Cs"):
        return ""
    decomposition = unicodedata.decomposition(c)
    letters = [d for d in unicodedata.normalize("NFKD", c) if unicodedata.category(d) not in ("Mn", "Mc", "Me")]
    plain = "".join(_TABLE.get(d, d) for d in letters)
    if not plain or not all(d.isascii() or d in _KEPT for d in plain):
        return None
    if decomposition.startswith("<super>"):
        return f"^{plain}" if plain.isdigit() else plain.replace("-", "^-")
    if decomposition.startswith("<circle>"):
        return f" {plain} "
    return f" {plain}" if decomposition.startswith("<fraction>") else plain


def _greek(found: re.Match[str]) -> str:
    """A Greek letter alone is a symbol and has a name; ohm and micro are left to the units."""
    c = found.group()
    return OHM if c == "Ω" else MICRO if c == "μ" else f" {_GREEK[c.lower()]} "


def _line_break(found: re.Match[str]) -> str:
    return " " if found.string[found.start() - 1] in ".,?!;:" else ". "
