"""Word tables as they are easiest to read and to extend."""

from __future__ import annotations


def table(text: str) -> dict[str, str]:
    """A lookup from "key: value | key: value", entries also parted by line ends."""
    entries = text.strip().replace("\n", "|").split("|")
    return {key.strip(): value.strip() for key, _, value in (entry.partition(":") for entry in entries)}
