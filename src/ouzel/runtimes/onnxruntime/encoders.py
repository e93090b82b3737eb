"""Speaker encoder and codec encoder on ONNX Runtime: what makes a reference of a recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import Codes
from ouzel.errors import BundleError, SynthesisError, UsageError
from ouzel.runtimes.meta import sizes
from ouzel.runtimes.onnxruntime.export_encoders import CODES, ROWS, SAMPLES, VECTOR
from ouzel.runtimes.onnxruntime.session import open_session, run, session_options

PIECE = 50
"""Rows (2 s) of a recording that go through the convolutions at a time: the first of them make 256 bytes of each sample."""

Samples = NDArray[np.float32]


class OrtSpeakerEncoder:
    """SpeakerAdapter over a session of ONNX Runtime. Any number of threads at once."""

    def __init__(self, path: Path, meta: Mapping[str, Any], *, threads: int = 0) -> None:
        """path: the graph of an artifact; meta: the artifact's. BundleError when it is incomplete."""
        found = sizes("speaker encoder", meta, ["sample_rate", "hidden_size", "least_samples"])
        self.sample_rate = found["sample_rate"]
        self._least, self._width = found["least_samples"], found["hidden_size"]
        self._session = _open(path, threads)

    def embed(self, samples: Samples) -> NDArray[np.float32]:
        """samples (n,) -> vector (hidden,). UsageError for a recording that is too short for a window."""
        if len(samples) < self._least:
            raise UsageError(
                f"A recording of {len(samples)} samples is too short; {self._least} are the least.", param="ref_audio"
            )
        (vector,) = run(self._session, {SAMPLES: samples}, [VECTOR])
        if vector.shape != (self._width,) or not np.isfinite(vector).all():
            raise SynthesisError("The speaker encoder made a vector that is none of this model's; convert the bundle again.")
        return vector


class OrtCodecEncoder:
    """CodecEncoderAdapter over two sessions of ONNX Runtime. Any number of threads at once."""

    def __init__(self, paths: Sequence[Path], meta: Mapping[str, Any], *, threads: int = 0) -> None:
        """paths: both graphs of an artifact, convolutions first; meta: the artifact's. BundleError when they are incomplete."""
        if len(paths) != 2:
            raise BundleError(f"The codec encoder has {len(paths)} graphs in the manifest, not 2; convert the bundle again.")
        found = sizes("codec encoder", meta, ["sample_rate", "groups", "codebook_size", "hop", "context", "max_rows"])
        self.sample_rate = found["sample_rate"]
        self._hop, self._context, self._most = found["hop"], found["context"], found["max_rows"]
        self._groups, self._ids = found["groups"], found["codebook_size"]
        self._features, self._codes = (_open(path, threads) for path in paths)

    def encode(self, samples: Samples) -> Codes:
        """samples (n,), n >= 1 -> codes int64 (ceil(n / samples a frame), groups). UsageError for one that is too long."""
        count = -(-len(samples) // self._hop)
        if not 1 <= count <= self._most:
            raise UsageError(
                f"A recording of {len(samples)} samples cannot be encoded: 1 to {self._most * self._hop} can.", param="ref_audio"
            )
        rows = []
        for start in range(0, count, PIECE):
            first = max(0, start - self._context)
            piece = samples[first * self._hop : (start + PIECE) * self._hop]
            rows.append(run(self._features, {SAMPLES: piece}, [ROWS])[0][start - first :])
        (codes,) = run(self._codes, {ROWS: np.concatenate(rows)}, [CODES])
        fits = codes.ndim == 2 and codes.shape[1] == self._groups and codes.size
        if not fits or not 0 <= codes.min() <= codes.max() < self._ids:
            raise SynthesisError("The codec encoder made codes that are none of this model's; convert the bundle again.")
        return codes


def _open(path: Path, threads: int) -> Any:
    options = session_options(threads)
    # Recordings are rare and each of another length: what one needed is of no use to the next.
    options.enable_mem_pattern = False
    options.enable_cpu_mem_arena = False
    return open_session(path, options=options)
