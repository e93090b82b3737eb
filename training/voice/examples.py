"""Training examples of the talker: text ids and codes of each utterance, one id a frame."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ouzel.english.phones import BREAK, MARKS, PHONES
from ouzel.models.qwen3_tts.prosody import contour, halves, is_voiced
from ouzel.models.qwen3_tts.track import Track

from .features import Array

ALPHABET = (*PHONES, BREAK)
LEVELS, STEP = 12, 1.5
DEV = 40  # every 40th utterance is for tuning, never for training


@dataclass(frozen=True)
class Example:
    """ids (T,) text ids; codes (T, 16); form, ms (symbols,) and semitones from the speaker's mean (NaN unvoiced)."""

    name: str
    text: str
    speaker: str
    speed: float
    form: tuple[str, ...]
    durations: Array
    tones: Array
    halves: np.ndarray
    pitch: Array
    codes: np.ndarray


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


def load(folder: Path, limit: int | None = None) -> tuple[list[Example], dict[str, float]]:
    """Examples of a codes folder and each speaker's mean in semitones from 150 Hz."""
    raw = []
    for path in sorted(folder.glob("*.npz"))[:limit]:
        with np.load(path) as value:
            about = json.loads(str(value["about"]))
            raw.append((path.stem, about, value["durations"], value["tones"], value["codes"]))
    means = {
        speaker: float(np.nanmean(np.concatenate([tones for _, about, _, tones, _ in raw if about["speaker"] == speaker])))
        for speaker in sorted({about["speaker"] for _, about, *_ in raw})
    }
    index = {symbol: i for i, symbol in enumerate(ALPHABET)}
    return [_example(*item, means, index) for item in raw], means


def _example(
    name: str, about: Mapping[str, object], durations: Array, tones: Array, codes: np.ndarray, means: Mapping[str, float],
    index: Mapping[str, int],
) -> Example:  # fmt: skip
    form, speaker = tuple(about["form"]), str(about["speaker"])  # type: ignore[arg-type]
    spoken = spoken_durations(form, durations)
    symbols, owners = halves(form, spoken, index)
    tones = tones - means[speaker]
    pitch = contour(form, filled(form, tones), owners)
    count = (len(symbols) + 1) // 2
    codes = np.concatenate([codes, np.repeat(codes[-1:], max(0, count - len(codes)), axis=0)])[:count]
    return Example(
        name, str(about["text"]), speaker, float(about["speed"]), form, durations, tones, symbols, pitch, codes.astype(np.int64)  # type: ignore[arg-type]
    )  # fmt: skip


def make_track(examples: list[Example]) -> Track:
    """The pairs of halves that occur, and each symbol with itself."""
    pairs = {(i, i) for i in range(len(ALPHABET))}
    for example in examples:
        padded = np.concatenate([example.halves, [0, 0, 0]])
        pairs |= set(zip(padded[1::2].tolist(), padded[2::2].tolist(), strict=False))
    return Track(ALPHABET, tuple(sorted(pairs)), LEVELS, STEP)


def split(examples: list[Example]) -> tuple[list[Example], list[Example]]:
    """Training and tuning examples."""
    tuning = [e for e in examples if int(e.name) // 2 % DEV == 3]
    return [e for e in examples if int(e.name) // 2 % DEV != 3], tuning
