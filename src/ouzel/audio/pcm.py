"""The unit of audio that travels through the pipeline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """One decoded chunk of an utterance, mono.

    samples: float32 (n,), in [-1, 1]; n = frames x samples_per_frame. The end marker may be empty.
    sample_rate: Hz, from the decoder's configuration.
    index: position in the utterance, from 0, without holes.
    is_last: True on exactly one chunk of an utterance that was not cancelled.
    frames: codec frames decoded into this chunk.
    """

    samples: Samples
    sample_rate: int
    index: int
    is_last: bool
    frames: int = 0

    @property
    def duration(self) -> float:
        """Seconds of audio."""
        return len(self.samples) / self.sample_rate

    def pcm16(self) -> bytes:
        """Little-endian signed 16-bit PCM, clipped."""
        return to_pcm16(self.samples)


def to_pcm16(samples: Samples) -> bytes:
    """Convert float32 samples in [-1, 1] to little-endian s16 (scale 32768, clipped to the s16 range)."""
    scaled = np.clip(np.rint(samples * 32768.0), -32768, 32767)
    data: bytes = scaled.astype("<i2").tobytes()
    return data


def fade_in(samples: Samples, position: int, length: int) -> Samples:
    """Linear fade over the first `length` samples of a stream; `samples` (n,) begin at `position` of it.

    The result does not depend on how the stream is cut; samples after the fade are returned untouched, as the same object if
    all are.
    """
    if position >= length:
        return samples
    faded = samples.copy()
    n = min(length - position, len(samples))
    faded[:n] *= (np.arange(position, position + n, dtype=np.float32) / np.float32(length)).astype(np.float32)
    return faded
