"""Letters to sounds for words that no dictionary knows: a small network, run with numpy.

A convolutional encoder reads the letters of the word; a decoder gives each letter a chunk of no, one or two phones, knowing
the chunks before it and whether the primary stress is placed. A beam search finds the likeliest chunks with exactly one primary
stress.
`training/voice/letter_sounds.py` made the weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

LETTERS = "abcdefghijklmnopqrstuvwxyz"
DILATIONS = (1, 1, 2, 2, 4)
HISTORY = 4
"""So many chunks before a letter are known to the decoder."""
BEAM = 4

_F32 = NDArray[np.float32]
_SEPARATOR = "|"
_NEVER = np.float32(-1e9)
_SMALL = 200_000


def save_weights(path: Path, arrays: Mapping[str, NDArray[Any]], tags: Sequence[str]) -> None:
    """Write weights (float arrays; matrices become int8 with a float16 scale a row) and the chunks, a blank between phones."""
    out: dict[str, Any] = {"tags": np.frombuffer(_SEPARATOR.join(tags).encode(), np.uint8)}
    for name, value in arrays.items():
        if value.ndim == 2:
            scale = (np.abs(value).max(1, keepdims=True) / 127 + 1e-8).astype(np.float16)
            out[name] = np.clip(np.rint(value / scale.astype(np.float32)), -127, 127).astype(np.int8)
            out[name + ".scale"] = scale
        else:
            out[name] = value.astype(np.float16)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **out)


def _normalise(x: _F32) -> _F32:
    return np.asarray(x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-5)), np.float32)


def _times(x: _F32, weight: _F32) -> _F32:
    """(L, C) @ (C, D) a few rows at a time, so small that no BLAS wakes its threads: on busy cores these cost a hundredfold."""
    rows = max(1, _SMALL // weight.size)
    return np.concatenate([x[i : i + rows] @ weight for i in range(0, len(x), rows)])


def _window(x: _F32, dilation: int) -> _F32:
    """(L, C) to (L, 3C): each letter with its neighbours `dilation` away, zeros past the ends."""
    length, width = x.shape
    padded = np.zeros((length + 2 * dilation, width), np.float32)
    padded[dilation : dilation + length] = x
    return np.concatenate([padded[:length], x, padded[2 * dilation :]], 1)


class LetterSounds:
    """Any word of the letters a to z to phones."""

    def __init__(self, arrays: Mapping[str, _F32], tags: Sequence[str]) -> None:
        self._chunks = tuple(tuple(tag.split()) for tag in tags)
        self._letter = arrays["letter.weight"]
        self._blocks: list[tuple[int, _F32, _F32, _F32, _F32]] = [
            (
                dilation,
                np.ascontiguousarray(arrays[f"inner.{i}.weight"].T),
                np.ascontiguousarray(arrays[f"outer.{i}.weight"].T),
                arrays[f"inner.{i}.bias"],
                arrays[f"outer.{i}.bias"],
            )
            for i, dilation in enumerate(DILATIONS)
        ]
        self._from_letters = np.ascontiguousarray(arrays["from_letters.weight"].T), arrays["from_letters.bias"]
        history = np.ascontiguousarray(arrays["from_tags.weight"].T)
        embedding = arrays["tag.weight"]
        width = embedding.shape[1]
        self._said = np.stack([embedding @ history[k * width : (k + 1) * width] for k in range(HISTORY)])
        """What the chunk HISTORY - k letters back adds to the decoder's hidden layer, (HISTORY, tags + 1, hidden)."""
        self._placed = np.repeat(np.stack([np.zeros_like(history[-1]), history[-1]]), BEAM, 0)
        self._head = np.ascontiguousarray(arrays["head.weight"].T), arrays["head.bias"]
        primary = np.array([any(phone.endswith("1") for phone in chunk) for chunk in self._chunks])
        plain, stressed = np.where(primary, _NEVER, np.float32(0)), np.where(primary, np.float32(0), _NEVER)
        self._to_unplaced = plain
        self._to_placed = np.repeat(np.stack([stressed, plain]), BEAM, 0)

    @classmethod
    def load(cls, path: Path) -> LetterSounds:
        """Read what `save_weights` wrote. Raises OSError or ValueError for a file that is missing or is no such archive."""
        with np.load(path) as stored:
            data = {name: stored[name] for name in stored.files}
        tags = data.pop("tags").tobytes().decode().split(_SEPARATOR)
        arrays = {
            name: value.astype(np.float32) * data[name + ".scale"].astype(np.float32)
            if value.dtype == np.int8
            else value.astype(np.float32)
            for name, value in data.items()
            if not name.endswith(".scale")
        }
        return cls(arrays, tags)

    def pronounce(self, word: str) -> tuple[str, ...]:
        """Phones for a word of the letters a to z: at most two a letter, exactly one primary stress.

        Raises ValueError for no letters or other characters.
        """
        if not word:
            raise ValueError("a word needs letters")
        x = self._letter[[LETTERS.index(letter) for letter in word]]
        for dilation, inner, outer, inner_bias, outer_bias in self._blocks:
            x = x + _times(np.maximum(_times(_window(_normalise(x), dilation), inner) + inner_bias, 0), outer) + outer_bias
        weight, bias = self._from_letters
        return self._search(_times(_window(_normalise(x), 1), weight) + bias)

    def _search(self, rows: _F32) -> tuple[str, ...]:
        """Beam search over rows (L, hidden). Slots 0..BEAM-1 hold paths without the primary stress, the rest paths with it."""
        weight, bias = self._head
        count = len(self._chunks)
        scores = np.full(2 * BEAM, _NEVER)
        scores[0] = 0.0
        history = np.full((2 * BEAM, HISTORY), count)
        steps: list[tuple[NDArray[np.intp], NDArray[np.intp]]] = []
        place = np.arange(HISTORY)
        for row in rows:
            hidden = row + self._said[place, history].sum(1) + self._placed
            logits = np.maximum(hidden, 0) @ weight + bias
            logits -= logits.max(1, keepdims=True)
            total = scores[:, None] + logits - np.log(np.exp(logits).sum(1, keepdims=True))
            unplaced, placed = (total[:BEAM] + self._to_unplaced).ravel(), (total + self._to_placed).ravel()
            best = [np.argpartition(flat, -BEAM)[-BEAM:] for flat in (unplaced, placed)]
            scores = np.concatenate([unplaced[best[0]], placed[best[1]]])
            before, tags = np.divmod(np.concatenate(best), count)
            history = np.concatenate([history[before, 1:], tags[:, None]], 1)
            steps.append((before, tags))
        slot = BEAM + int(scores[BEAM:].argmax())
        phones: list[str] = []
        for before, tags in reversed(steps):
            phones.extend(reversed(self._chunks[tags[slot]]))
            slot = int(before[slot])
        return tuple(reversed(phones))
