"""Durations and pitch of a spoken form: a small convolutional network over its symbols, numpy only.

It sees the whole sentence, so that a question rises and a phrase end slows down although the talker hears the text frame by
frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...english.phones import BREAK, MARKS, SILENCE, is_vowel
from .shard import Shard, write_shard
from .track import THIRD_MS, Ids

Array = NDArray[np.float32]

LEAD_MS, TAIL_MS = 80, 120  # silence around an utterance
UNIT_MS = 10.0  # durations are predicted as log(1 + ms / UNIT_MS)
PAUSE_MS = 160.0
LONGEST_MS = 1200.0
KERNEL = 5
_UNVOICED = frozenset(("CH", "F", "HH", "K", "P", "S", "SH", "T", "TH", BREAK, *MARKS))


def is_voiced(symbol: str) -> bool:
    """Whether a symbol has a pitch of its own."""
    return is_vowel(symbol) or symbol not in _UNVOICED


def thirds(form: Sequence[str], durations: Array, alphabet: Mapping[str, int], offset: float = LEAD_MS) -> tuple[Ids, Ids]:
    """Alphabet index and form index of every third of a frame.

    durations: (symbols,) ms. Every phone gets at least one, a break or mark may get none; a mark is silence, and so
    is a break longer than PAUSE_MS.
    The form index of the silence before and after is -1.
    """
    ends = (offset + np.cumsum(durations)) / THIRD_MS
    symbols, owners = [alphabet[SILENCE]] * round(offset / THIRD_MS), [-1] * round(offset / THIRD_MS)
    for index, symbol in enumerate(form):
        silent = symbol in MARKS or (symbol == BREAK and durations[index] > PAUSE_MS)
        least = 0 if silent or symbol == BREAK else 1
        count = max(round(float(ends[index])) - len(symbols), least)
        symbols += [alphabet[SILENCE if silent else symbol]] * count
        owners += [index] * count
    tail = round(TAIL_MS / THIRD_MS)
    return np.array(symbols + [alphabet[SILENCE]] * tail, np.int64), np.array(owners + [-1] * tail, np.int64)


def contour(form: Sequence[str], tones: Array, owners: Ids) -> Array:
    """Semitones at every third of a frame: tones (symbols,) at the middle of each voiced symbol, straight lines between."""
    places, values = [], []
    for index, symbol in enumerate(form):
        own = np.flatnonzero(owners == index)
        if len(own) and is_voiced(symbol):
            places.append(own.mean())
            values.append(tones[index])
    if not places:
        return np.zeros(len(owners), np.float32)
    return np.asarray(np.interp(np.arange(len(owners)), places, values), np.float32)


@dataclass(frozen=True)
class Prosody:
    """symbols: what a form may hold; speakers: names; weights: float32 arrays by name; dilations: of the layers."""

    symbols: tuple[str, ...]
    speakers: tuple[str, ...]
    dilations: tuple[int, ...]
    weights: Mapping[str, Array]

    def predict(self, form: Sequence[str], speaker: str, rate: float = 1.0) -> tuple[Array, Array]:
        """ms (symbols,) and semitones from the speaker's mean (symbols,) of a spoken form; rate: 2 is twice as fast."""
        w = self.weights
        index = {symbol: i for i, symbol in enumerate(self.symbols)}
        x = w["symbol"][[index[symbol] for symbol in form]] + w["speaker"][self.speakers.index(speaker)]
        for layer, dilation in enumerate(self.dilations):
            x = x + _convolved(_silu(_normed(x)), w[f"layer.{layer}.weight"], dilation) + w[f"layer.{layer}.bias"]
        out = _silu(_normed(x)) @ w["out.weight"] + w["out.bias"]
        durations = np.clip(np.expm1(out[:, 0]) * UNIT_MS, 0, LONGEST_MS) / rate
        return durations.astype(np.float32), out[:, 1].astype(np.float32)

    def track(self, form: Sequence[str], speaker: str, alphabet: Mapping[str, int], rate: float = 1.0) -> tuple[Ids, Array]:
        """Thirds of frames (n,) as alphabet indices and their pitch (n,) in semitones: what `Track.ids` takes."""
        durations, tones = self.predict(form, speaker, rate)
        if form and form[-1] in MARKS:  # the tail is the last mark's silence
            durations[-1] = 0
        symbols, owners = thirds(form, durations, alphabet)
        return symbols, contour(form, tones, owners)

    def value(self) -> dict[str, Any]:
        """JSON form of what is not weights."""
        return {"symbols": list(self.symbols), "speakers": list(self.speakers), "dilations": list(self.dilations)}

    def save(self, path: Path) -> None:
        """Write the weights as a float16 safetensors file."""
        shapes = {name: array.shape for name, array in self.weights.items()}
        write_shard(path, shapes, "F16", lambda name, _: [self.weights[name]])

    @classmethod
    def read(cls, value: Mapping[str, Any], path: Path) -> Prosody:
        """From `value()` and the file of `save`. Raises CheckpointError for a damaged file, KeyError for a missing entry."""
        shard = Shard(path)
        weights = {name: shard.read(name) for name in shard.tensors}
        return cls(tuple(value["symbols"]), tuple(value["speakers"]), tuple(value["dilations"]), weights)


def _normed(x: Array) -> Array:
    return np.asarray(x / np.sqrt(np.square(x).mean(1, keepdims=True) + 1e-5), np.float32)


def _silu(x: Array) -> Array:
    return np.asarray(x / (1 + np.exp(-x)), np.float32)


def _convolved(x: Array, weight: Array, dilation: int) -> Array:
    """x (n, channels), weight (KERNEL, channels, channels), same length, zeros outside."""
    reach = KERNEL // 2 * dilation
    padded = np.pad(x, ((reach, reach), (0, 0)))
    out = np.zeros_like(x)
    for tap in range(KERNEL):
        out += padded[tap * dilation : tap * dilation + len(x)] @ weight[tap]
    return out
