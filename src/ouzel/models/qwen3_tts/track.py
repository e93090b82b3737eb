"""The phone track: one text id for each codec frame, made of what is said around the frame's end.

Time is cut into halves of 40 ms. The id that joins the talker's input for frame t names the phones of halves 2t + 1 and 2t + 2
(the frame's second half and the next frame's first: half a frame ahead) and the level of the pitch where they meet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]

HALF_MS = 40
SPECIALS = ("<|tts_pad|>", "<|tts_bos|>", "<|tts_eos|>", "<|im_start|>", "<|im_end|>", "assistant", "\n")
"""Ids 0 to 6; the tracks' ids follow."""


@dataclass(frozen=True)
class Track:
    """The vocabulary of a voice's track.

    alphabet: symbols a half can hold, the first is silence; pairs: those of two halves that have ids, all (a, a) among them;
    levels: of pitch, `step` semitones each, the middle one at a speaker's own mean.
    """

    alphabet: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]
    levels: int
    step: float

    def __post_init__(self) -> None:
        table = np.full((len(self.alphabet), len(self.alphabet)), -1, np.int64)
        for index, (first, second) in enumerate(self.pairs):
            table[first, second] = index
        same = table.diagonal()
        if (same < 0).any():
            raise ValueError("each symbol needs the pair with itself")
        # a pair never seen in training is heard as its first phone going on
        object.__setattr__(self, "_table", np.where(table < 0, same[:, None], table))

    @property
    def size(self) -> int:
        """Ids in all."""
        return len(SPECIALS) + len(self.pairs) * self.levels

    def frames(self, halves: int) -> int:
        """Codec frames of a track of so many halves; the last frame may be half silence."""
        return (halves + 1) // 2

    def ids(self, halves: Sequence[int] | Ids, pitch: NDArray[np.float32]) -> Ids:
        """halves (n,) alphabet indices; pitch (n,) semitones from the speaker's mean. Returns (frames(n),) ids."""
        count = self.frames(len(halves))
        padded = np.zeros(2 * count + 2, np.int64)
        padded[: len(halves)] = halves
        tones = np.full(2 * count + 2, pitch[-1], np.float32)
        tones[: len(pitch)] = pitch
        first, second = padded[1::2][:count], padded[2::2][:count]
        level = self.level((tones[1::2][:count] + tones[2::2][:count]) / 2)
        pair = np.asarray(vars(self)["_table"])[first, second]
        return np.asarray(len(SPECIALS) + pair * self.levels + level, np.int64)

    def level(self, semitones: NDArray[np.floating[Any]]) -> Ids:
        middle = (self.levels - 1) / 2
        return np.asarray(np.rint(np.clip(semitones / self.step + middle, 0, self.levels - 1)), np.int64)

    def parts(self, ids: Ids) -> tuple[Ids, Ids, Ids]:
        """(first, second, level) of track ids, the inverse of `ids` for known pairs."""
        pair, level = np.divmod(ids - len(SPECIALS), self.levels)
        both = np.array(self.pairs, np.int64)[pair]
        return both[..., 0], both[..., 1], level

    def value(self) -> dict[str, Any]:
        """JSON form."""
        pairs = [f"{self.alphabet[a]}|{self.alphabet[b]}" for a, b in self.pairs]
        return {"alphabet": list(self.alphabet), "pairs": pairs, "levels": self.levels, "step": self.step}

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Track:
        alphabet = tuple(value["alphabet"])
        index = {symbol: i for i, symbol in enumerate(alphabet)}
        pairs = tuple((index[a], index[b]) for a, b in (pair.split("|") for pair in value["pairs"]))
        return cls(alphabet, pairs, int(value["levels"]), float(value["step"]))
