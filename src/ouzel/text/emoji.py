"""Take emoji and other pictures out of a text, together with the joiners, selectors and spaces that belonged to them."""

from __future__ import annotations

import re

# Blocks and single characters that are shown as pictures. Left in: digits in circles, musical ♭♮♯, plain arrows, © ® ™.
_PICTURES = (
    "\U0001f000-\U0001f0ff\U0001f10d-\U0001faff\u2600-\u266c\u2670-\u2775\u2794-\u27bf\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55"
    "\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe"
)
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_GLUE = _SELECTORS + "\u200d\u20e3\U000e0020-\U000e007f"
# An arrow, wave or part mark is a picture only with the emoji selector behind it.
_EMOJI = re.compile(f"(?:[{_PICTURES}]|[\u2190-\u21ff\u2900-\u297f\u3030\u303d]\ufe0f)[{_PICTURES}{_GLUE}]*")
_LEFTOVERS = re.compile(f"[{_SELECTORS}\u20e3\U000e0020-\U000e007f]")  # "1" + selector + keycap is spoken as 1
_CLOSING = frozenset(".,!?;:…)]}。，！？；：、）」』”’")


def strip_emoji(text: str) -> str:
    """Remove emoji, flags, keycap and skin-tone parts, variation selectors; words that an emoji held apart get a space."""
    out: list[str] = []
    last = 0
    for found in _EMOJI.finditer(text):
        start, end = found.span()
        out.append(text[last:start])
        last = end
        before, after = text[start - 1 : start], text[end : end + 1]
        if after in _CLOSING or not after or after == "\n":
            _trim(out)
        elif not before or before.isspace():
            last += after in " \t"
        elif before.isalnum() and after.isalnum():
            out.append(" ")
    out.append(text[last:])
    return _LEFTOVERS.sub("", "".join(out))


def _trim(out: list[str]) -> None:
    """Drop the spaces at the end of the joined pieces."""
    while out:
        out[-1] = out[-1].rstrip(" \t")
        if out[-1]:
            return
        out.pop()
