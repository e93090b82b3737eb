"""Which characters end a sentence or clause, close a quotation, or can be spoken at all."""

from __future__ import annotations

import re
import unicodedata

# Decided by what follows: whitespace or the end of the text. "." also asks for abbreviations and numbers.
SPACED_ENDS = ".!?\u2026\u203c\u2047\u2048\u2049"  # … ‼ ⁇ ⁈ ⁉
# End a sentence anywhere: fullwidth, ideographic, danda, Arabic, Armenian, Ethiopic, Myanmar, Khmer, Tibetan, Mongolian.
DIRECT_ENDS = "。！？｡．\u0964\u0965\u061f\u06d4\u0589\u1362\u1367\u104b\u17d4\u17d5\u0f0d\u0f0e\u1803\u1809"
SPACED_CLAUSES = ",;:"
DIRECT_CLAUSES = "，；、：､\u060c\u061b\u104a\u1363\u1364"
# Between two digits these belong to the number: 1，000  9：30  3．14
IN_NUMBERS = "．，：、\u060c"

NEWLINES = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"

# What closes after a mark in any script.
CLOSERS = "\"'”’»›)]}）］｝】」』》〉〕〗〙〛｣"
# After a spaced mark also German closing quotes (openers elsewhere) and Markdown emphasis.
SPACED_CLOSERS = CLOSERS + "“‘«‹*_~`"

_SPEAKABLE = re.compile(r"[^\W_]")
# Symbols that a voice does say, although Unicode files them with pictures.
_SPOKEN_SYMBOLS = frozenset("°©®™№℃℉℗℠")
_UNSPOKEN_CATEGORIES = frozenset({"So", "Cc", "Co", "Cn", "Cs"})


def first_speakable(text: str) -> int:
    """Index of the first letter or digit, or -1."""
    found = _SPEAKABLE.search(text)
    return found.start() if found else -1


def speakable(text: str) -> bool:
    """True if the text has at least one letter or digit of any script."""
    return first_speakable(text) >= 0


def unspeakable_characters(text: str) -> list[str]:
    """The distinct pictures, control and private characters of a text, in order of appearance."""
    seen = dict.fromkeys(text)
    return [c for c in seen if not c.isspace() and c not in _SPOKEN_SYMBOLS and unicodedata.category(c) in _UNSPOKEN_CATEGORIES]


def describe(characters: list[str], limit: int = 5) -> str:
    """Characters for a message, at most `limit` of them: '…' (HORIZONTAL ELLIPSIS), or U+0007 where nothing can be shown."""
    parts = []
    for c in characters[:limit]:
        name = unicodedata.name(c, "")
        shown = f"'{c}'" if c.isprintable() and not unicodedata.combining(c) else f"U+{ord(c):04X}"
        parts.append(f"{shown} ({name})" if name else shown)
    more = len(characters) - limit
    return ", ".join(parts) + (f" and {more} more" if more > 0 else "")


def is_extending(c: str) -> bool:
    """True for a character that must stay with the one before it: combining marks, joiners, variation selectors, skin tones."""
    return unicodedata.category(c) in ("Mn", "Mc", "Me") or c in "\u200c\u200d" or "\U0001f3fb" <= c <= "\U0001f3ff"
