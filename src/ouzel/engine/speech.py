"""A finished utterance: the stream, joined."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from ouzel.audio.pcm import Samples, to_pcm16
from ouzel.audio.wav import write_wav
from ouzel.engine.metrics import UtteranceMetrics


@dataclass(frozen=True, slots=True)
class Speech:
    """samples: float32 (n,), mono, in [-1, 1]; sample_rate in Hz.

    finish_reason: "stop" (the model ended), "length" (the frame budget did), "stuck" (see StuckPolicy) or "cancelled".
    seed: repeats this result.
    """

    samples: Samples
    sample_rate: int
    finish_reason: str
    metrics: UtteranceMetrics
    seed: int | None = None

    @property
    def duration(self) -> float:
        """Seconds of audio."""
        return len(self.samples) / self.sample_rate

    def pcm16(self) -> bytes:
        """Little-endian signed 16-bit PCM, clipped."""
        return to_pcm16(self.samples)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write a 16-bit WAV file; it appears complete or not at all."""
        return write_wav(path, [self.samples], self.sample_rate)
