"""One or several: how the noun after a figure is put."""

from __future__ import annotations

import re

_ARTICLE = re.compile(r"\b[Aa]n?\s$")


def attributive(found: re.Match[str]) -> bool:
    """True if the quantity describes a noun, which makes its unit singular: "a $20 bill", "a 5 km run", "a 10-kg bag"."""
    text, end = found.string, found.end()
    if text[end : end + 1] == "-" and text[end + 1 : end + 2].isalpha():
        return True
    return (
        text[end : end + 1] == " "
        and text[end + 1 : end + 2].isalpha()
        and bool(_ARTICLE.search(text[max(0, found.start() - 4) : found.start()]))
    )
