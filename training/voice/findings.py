"""Everything that a report says, before it is laid out; and the two ways in which all of its parts lay it out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .agreement import Agreement
from .costs import FirstAudio
from .listening import Heard


@dataclass(frozen=True)
class Compared:
    """Another bundle of the same voice: where it lies, its size in bytes, what was heard, how it agrees with the first."""

    name: str
    size: int
    heard: Sequence[Heard]
    agreement: Agreement | None


@dataclass(frozen=True)
class Findings:
    """Everything on the page. heard, teacher: of the three sets and the short one. parts: bytes. samples: file name to text."""

    name: str
    key: str
    options: Mapping[str, object]
    heard: Sequence[Heard]
    teacher: Sequence[Heard]
    first: FirstAudio | None
    parts: Mapping[str, int]
    compared: Sequence[Compared] = ()
    samples: Mapping[str, str] = field(default_factory=dict)

    @property
    def speakers(self) -> list[str]:
        return list(dict.fromkeys(h.speaker for h in self.heard))

    @property
    def size(self) -> int:
        return sum(self.parts.values())


def of(heard: Iterable[Heard], sets: Sequence[str] | str, speaker: str | None = None) -> list[Heard]:
    wanted = (sets,) if isinstance(sets, str) else sets
    return [h for h in heard if h.set in wanted and speaker in (None, h.speaker)]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join("---" for _ in head) + "|"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"
