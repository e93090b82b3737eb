"""Signs that are left after figures and addresses: & @ # % + = / < > * and currency signs without an amount."""

from __future__ import annotations

import re

from .characters import MICRO, OHM
from .spelling import LETTER_A, spelled
from .tables import table

_NAMES = {"C++": "C plus plus", "c++": "C plus plus", "C#": "C sharp", "c#": "C sharp", "F#": "F sharp"}
_NAME = re.compile(r"(?<![\w])(?:[Cc]\+\+|[CcF]#)(?![\w+#])")
_SHORTHAND = re.compile(
    r"(?<![\w/])(?:w/o|w/|c/o|and/or|n/a|he/she|she/he|him/her|his/her|her/his|s/he|b/c)(?![\w/])", re.IGNORECASE
)
_SHORTHANDS = table(
    f"""
w/o: without | w/: with | c/o: care of | and/or: and or | n/a: N {LETTER_A} | he/she: he or she | she/he: she or he
him/her: him or her | his/her: his or her | her/his: her or his | s/he: she or he | b/c: because
"""
)
_SMILEY = re.compile(r"(?<!\S)(?:[:;=8][-']?[()DPpOo|\]\[/\\]+|<3|\^_?\^|[-T]_[-T])(?!\w)")
_PARTNERS = re.compile(r"(?<![\w&])[A-Z]{1,4}(?:&[A-Z]{1,4})+(?![\w&])")
_HASHTAG = re.compile(r"(?<!\w)#(?=[A-Za-z_])")
_ARROW = re.compile(r"\s?(?:<?[-=]{1,2}>)\s?")
_LINE = re.compile(r"([=*#~+/\\<>^|@$%&_])\1{2,}|--{2,}")
_DOUBLE = re.compile(r"\*\*|~~|__|//|\\\\|\|\||##|\+\+|%%|@@|\$\$|<<|>>")
_PAIRS = {"==": " equals ", "&&": " and ", "!=": " is not ", "<=": " is at most ", ">=": " is at least "}
_PAIR = re.compile("|".join(map(re.escape, _PAIRS)))
_WORDS = {
    "&": "and", "@": "at", "%": "percent", "#": "hash", "+": "plus", "=": "equals", "/": "slash", "\\": "backslash",
    "<": "less than", ">": "greater than", "°": "degrees", MICRO: "micro", OHM: "ohms",
}  # fmt: skip
_WORD = re.compile("[" + re.escape("".join(_WORDS)) + "]")
_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9]{0,15}(?:\s[^<>]{0,200})?/?>")
_ANY = re.compile(r"[&@%#+=/\\<>*^|~$€£¥₹₩₽₺₿₪₫₴₦₱฿¢°\u00b5\u2126:;_-]")


def speak_symbols(text: str) -> str:
    if not _ANY.search(text):
        return text
    text = _LINE.sub(", ", text)
    text = _SMILEY.sub(" ", text)
    text = _NAME.sub(lambda m: _NAMES[m.group()], text)
    text = _SHORTHAND.sub(lambda m: _SHORTHANDS[m.group().lower()], text)
    text = _PARTNERS.sub(lambda m: " and ".join(spelled(letters) for letters in m.group().split("&")), text)
    text = _HASHTAG.sub(" hashtag ", text)
    text = _ARROW.sub(" to ", _TAG.sub(" ", text))
    text = _DOUBLE.sub(" ", _PAIR.sub(lambda m: _PAIRS[m.group()], text))
    text = _WORD.sub(lambda m: f" {_WORDS[m.group()]} ", text)
    return _currency(text)


def _currency(text: str) -> str:
    if text.isascii() and "$" not in text:
        return text
    from .money import LEFTOVER

    return "".join(f" {LEFTOVER[c]} " if c in LEFTOVER else c for c in text)
