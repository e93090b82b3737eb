"""The held-out sentences of the report: three sets that no training or tuning ever sees."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "sentences"
SETS = ("everyday", "benchmark", "numbers")
SHORT = "short"
"""One to five words each; kept apart, because words so common cannot be held out of a corpus altogether."""


def read(name: str) -> list[tuple[str, str]]:
    """(text to speak, words a listener would write down) of one set; the two differ where the text has figures."""
    pairs = []
    for line in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            text, _, said = line.partition("|")
            pairs.append((text.strip(), said.strip() or text.strip()))
    return pairs


def held_out() -> list[str]:
    return [said for name in SETS for _, said in read(name)]
