"""What the decoder tests share: the golden vectors, the checkpoint they were made of, and how closeness is measured."""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.random_checkpoint import write_random_checkpoint

GOLDEN = Path(__file__).parent / "golden" / "decoder"
REQUIRED_DB = 100.0


@dataclass(frozen=True)
class Golden:
    """The official one-shot decode of `codes` (frames, groups): every `stride`-th sample, first and last frame in full."""

    codes: np.ndarray
    every: np.ndarray
    first: np.ndarray
    last: np.ndarray
    stride: int
    codec_sha256: str

    def worst_db(self, samples: np.ndarray) -> float:
        """The lowest of the three signal-to-noise ratios of `samples`, which must be of the golden's length."""
        frame = len(self.first)
        assert samples.shape == (len(self.codes) * frame,)
        parts = ((samples[:: self.stride], self.every), (samples[:frame], self.first), (samples[-frame:], self.last))
        return min(snr(part, golden) for part, golden in parts)


def read_golden() -> Golden:
    meta = json.loads((GOLDEN / "tiny.json").read_text())
    with np.load(GOLDEN / "tiny.npz") as arrays:
        fields = {name: arrays[name] for name in ("every", "first", "last")}
        return Golden(arrays["codes"].astype(np.int64), **fields, stride=meta["stride"], codec_sha256=meta["codec_sha256"])


def golden_checkpoint(folder: Path) -> Checkpoint:
    """Write the checkpoint of the golden vectors below `folder` and open it; fails if its codec is not the same bytes."""
    recipe = json.loads((GOLDEN / "tiny.json").read_text())
    write_random_checkpoint(folder / "tiny", **recipe["checkpoint"])
    codec = folder / "tiny" / "speech_tokenizer" / "model.safetensors"
    assert hashlib.sha256(codec.read_bytes()).hexdigest() == recipe["codec_sha256"], "run tools/golden_decoder.py again"
    return Checkpoint(folder / "tiny")


def snr(found: np.ndarray, wanted: np.ndarray) -> float:
    """Signal-to-noise ratio in dB of `found` against `wanted`."""
    noise = np.sum((found.astype(np.float64) - wanted) ** 2)
    return float(10 * np.log10(np.sum(wanted.astype(np.float64) ** 2) / max(noise, 1e-300)))


def chunks(frames: int, size: int | None, seed: int = 0) -> list[slice]:
    """`frames` cut into pieces of `size`, or of random sizes 1..40 when None."""
    rng, edges = np.random.default_rng(seed), [0]
    while edges[-1] < frames:
        edges.append(min(frames, edges[-1] + (size or int(rng.integers(1, 41)))))
    return [slice(a, b) for a, b in itertools.pairwise(edges)]
