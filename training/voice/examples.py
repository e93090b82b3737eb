"""Training examples: what is known of each utterance, and its cut into codec frames with one text id each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ouzel.english.phones import BREAK, MARKS, PHONES
from ouzel.models.qwen3_tts.prosody import LEAD_MS, contour, is_voiced, thirds
from ouzel.models.qwen3_tts.track import THIRDS, Track

from .codec import Codec, features
from .features import HOP, Array

ALPHABET = (*PHONES, BREAK)
LEVELS, STEP = 12, 1.5
DEV = 40  # every 40th utterance is for tuning, never for training


@dataclass(frozen=True)
class Example:
    """What is known of an utterance. form, ms (symbols,) and semitones from the speaker's mean (NaN unvoiced); spectrum and Hz of
    the whole, start (samples) and frames of what is spoken."""

    name: str
    text: str
    speaker: str
    speed: float
    form: tuple[str, ...]
    durations: Array
    tones: Array
    spectrum: np.ndarray
    hertz: Array
    start: int
    frames: int


@dataclass(frozen=True)
class Take:
    """An utterance cut into codec frames: thirds (n,) of frames and their pitch (n,) for `Track.ids`; codes (T, 16)."""

    name: str
    text: str
    speaker: str
    thirds: np.ndarray
    pitch: Array
    codes: np.ndarray


_INDEX = {symbol: i for i, symbol in enumerate(ALPHABET)}


def take(example: Example, codec: Codec, shift: int = 0) -> Take:
    """The utterance with its frames beginning `shift` * 10 ms earlier. Shifts make eight different takes of one."""
    spoken = spoken_durations(example.form, example.durations)
    symbols, owners = thirds(example.form, spoken, _INDEX, LEAD_MS + 10 * shift)
    pitch = contour(example.form, filled(example.form, example.tones), owners)
    count = -(-len(symbols) // THIRDS)
    values = features(example.spectrum, example.hertz, example.start - shift * HOP, count)
    codes = codec.encode(codec.components(values)).astype(np.int64)
    return Take(example.name, example.text, example.speaker, symbols, pitch, codes)


def spoken_durations(form: tuple[str, ...], durations: Array) -> Array:
    """The last mark's silence is the utterance's tail, not its own."""
    out = durations.copy()
    if form and form[-1] in MARKS:
        out[-1] = 0
    return out


def filled(form: tuple[str, ...], tones: Array) -> Array:
    """Tones with a straight line through voiced symbols whose pitch the teacher left out."""
    known = np.array([is_voiced(s) for s in form]) & ~np.isnan(tones)
    if not known.any():
        return np.zeros(len(form), np.float32)
    return np.interp(np.arange(len(form)), np.flatnonzero(known), tones[known]).astype(np.float32)


class Corpus:
    """The examples of a `seen-*` folder, read as they come into being. means: of each speaker, semitones from 150 Hz."""

    def __init__(self, folder: Path, means: Mapping[str, float] | None = None) -> None:
        self.examples: list[Example] = []
        self._folder, self._read = folder, set[str]()
        self.means = dict(means or {})
        self.refresh()

    def refresh(self, limit: int | None = None) -> None:
        raw = []
        for path in sorted(self._folder.glob("*.npz"))[:limit]:
            if path.name in self._read:
                continue
            self._read.add(path.name)
            with np.load(path) as value:
                raw.append((path.stem, json.loads(str(value["about"])), {n: value[n] for n in value.files if n != "about"}))
        if not self.means:
            for speaker in sorted({about["speaker"] for _, about, _ in raw}):
                tones = np.concatenate([v["tones"] for _, about, v in raw if about["speaker"] == speaker])
                self.means[speaker] = float(np.nanmean(tones))
        for name, about, value in raw:
            speaker = str(about["speaker"])
            self.examples.append(
                Example(
                    name, str(about["text"]), speaker, float(about["speed"]), tuple(about["form"]), value["durations"],
                    value["tones"] - np.float32(self.means[speaker]), value["spectrum"], value["pitch"], int(value["start"]),
                    int(value["frames"]),
                )
            )  # fmt: skip

    @property
    def train(self) -> list[Example]:
        return [e for e in self.examples if int(e.name) // 2 % DEV != 3]

    @property
    def tuning(self) -> list[Example]:
        """Never trained on: what is watched while training."""
        return [e for e in self.examples if int(e.name) // 2 % DEV == 3]


def make_track(takes: list[Take], least: int = 2) -> Track:
    """The triples that occur at least so often, and each symbol with itself."""
    found: Counter[tuple[int, int, int]] = Counter()
    for one in takes:
        padded = np.concatenate([one.thirds, np.zeros(-len(one.thirds) % THIRDS, np.int64)])
        found.update(map(tuple, padded.reshape(-1, THIRDS).tolist()))
    triples = {(i, i, i) for i in range(len(ALPHABET))} | {triple for triple, count in found.items() if count >= least}
    return Track(ALPHABET, tuple(sorted(triples)), LEVELS, STEP)
