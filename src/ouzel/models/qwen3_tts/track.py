"""The phone track: one text id for each codec frame, made of what is said in the next one.

Time is cut into thirds of a frame. The id that joins the talker's input for frame t names the phones of the three thirds of frame
t + 1 and the level of the pitch at its middle: the talker sees one frame ahead, and what frame t says it has seen a row earlier.
Frame 0 is never named; it is silent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]

THIRDS = 3
FRAME_MS = 80.0
THIRD_MS = FRAME_MS / THIRDS
SPECIALS = ("<|tts_pad|>", "<|tts_bos|>", "<|tts_eos|>", "<|im_start|>", "<|im_end|>", "assistant", "\n")
"""Ids 0 to 6; the tracks' ids follow."""


@dataclass(frozen=True)
class Track:
    """The vocabulary of a voice's track.

    alphabet: symbols a third can hold, the first is silence; triples: those of three thirds that have ids, all (a, a, a) among
    them; levels: of pitch, `step` semitones each, the middle one at a speaker's own mean.
    """

    alphabet: tuple[str, ...]
    triples: tuple[tuple[int, int, int], ...]
    levels: int
    step: float

    def __post_init__(self) -> None:
        known = {triple: index for index, triple in enumerate(self.triples)}
        if lacking := [symbol for i, symbol in enumerate(self.alphabet) if (i, i, i) not in known]:
            raise ValueError(f"the symbol {lacking[0]!r} needs the triple of itself")
        object.__setattr__(self, "_known", known)

    @property
    def size(self) -> int:
        """Ids in all."""
        return len(SPECIALS) + len(self.triples) * self.levels

    def frames(self, thirds: int) -> int:
        """Codec frames of a track of so many thirds; the end of the last frame may be silence."""
        return -(-thirds // THIRDS)

    def ids(self, thirds: Sequence[int] | Ids, pitch: NDArray[np.float32]) -> Ids:
        """thirds (n,) alphabet indices; pitch (n,) semitones from the speaker's mean. Returns (frames(n),) ids."""
        count = self.frames(len(thirds))
        padded = np.zeros(THIRDS * (count + 1), np.int64)
        padded[: len(thirds)] = thirds
        tones = np.full(THIRDS * (count + 1), pitch[-1], np.float32)
        tones[: len(pitch)] = pitch
        following = padded.reshape(-1, THIRDS)[1:].tolist()
        triples = np.array([self._triple(a, b, c) for a, b, c in following], np.int64)
        return np.asarray(len(SPECIALS) + triples * self.levels + self.level(tones[THIRDS + 1 :: THIRDS]), np.int64)

    def _triple(self, a: int, b: int, c: int) -> int:
        """The index of a triple. One never seen in training keeps its middle phone: the others are likelier to be beside it."""
        known: dict[tuple[int, int, int], int] = vars(self)["_known"]
        return next(known[triple] for triple in ((a, b, c), (b, b, c), (a, b, b), (b, b, b)) if triple in known)

    def level(self, semitones: NDArray[np.floating[Any]]) -> Ids:
        middle = (self.levels - 1) / 2
        return np.asarray(np.rint(np.clip(semitones / self.step + middle, 0, self.levels - 1)), np.int64)

    def parts(self, ids: Ids) -> tuple[Ids, Ids, Ids, Ids]:
        """(first, second, third, level) of track ids, the inverse of `ids` for known triples."""
        triple, level = np.divmod(ids - len(SPECIALS), self.levels)
        three = np.array(self.triples, np.int64)[triple]
        return three[..., 0], three[..., 1], three[..., 2], level

    def summands(self) -> Ids:
        """(size, 4): numbers of the parts that a row of each id is the sum of, where a voice has learnt it so.

        The special ids have a part each; so have the symbols in each third, and the levels; the last part is nothing.
        """
        symbols = len(self.alphabet)
        places = len(SPECIALS) + symbols * np.arange(THIRDS + 1)
        parts = np.stack(self.parts(np.arange(len(SPECIALS), self.size)), -1) + places
        specials = np.full((len(SPECIALS), THIRDS + 1), places[-1] + self.levels)
        specials[:, 0] = np.arange(len(SPECIALS))
        return np.asarray(np.concatenate([specials, parts]), np.int64)

    def value(self) -> dict[str, Any]:
        """JSON form."""
        triples = ["|".join(self.alphabet[i] for i in triple) for triple in self.triples]
        return {"alphabet": list(self.alphabet), "triples": triples, "levels": self.levels, "step": self.step}

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Track:
        alphabet = tuple(value["alphabet"])
        index = {symbol: i for i, symbol in enumerate(alphabet)}
        triples = tuple((index[a], index[b], index[c]) for a, b, c in (triple.split("|") for triple in value["triples"]))
        return cls(alphabet, triples, int(value["levels"]), float(value["step"]))
