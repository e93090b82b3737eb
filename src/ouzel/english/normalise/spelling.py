"""Letters said one by one, on their way through the steps."""

from __future__ import annotations

LETTER_A = "\x01"
"""The letter A until the last step, which knows its neighbours; other letters are plain capitals, and an A is still undecided."""


def spelled(letters: str) -> str:
    """The names of letters: "fbi" as "F B I"; apostrophes are left out."""
    return " ".join(LETTER_A if c in "aA" else c.upper() for c in letters if c != "'")
