"""The speaker encoder on ggml: a SpeakerAdapter, in float32.

Its log-mel frames are numpy's (`ouzel.audio.mel`): the Fourier transform there is exact, and far fewer multiplications than the
matrix product that it would be in ggml.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ouzel.audio.mel import HOP, log_mel
from ouzel.errors import SynthesisError, UsageError
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.llama_cpp.ggml import Arena, Backend
from ouzel.runtimes.llama_cpp.gguf_file import GgufFile
from ouzel.runtimes.llama_cpp.library import library
from ouzel.runtimes.llama_cpp.meta import threads_of
from ouzel.runtimes.llama_cpp.speaker_graph import SpeakerGraph
from ouzel.runtimes.llama_cpp.speaker_weights import SpeakerMeta, read_weights

if TYPE_CHECKING:
    from ouzel.bundle import Artifact, Bundle

Floats = NDArray[np.float32]

MOST_FRAMES = 1 << 14
"""Mel frames of the longest recording, 175 s: what a graph needs of memory grows with them."""


class LlamaSpeakerEncoder:
    """SpeakerAdapter. One thread at a time."""

    def __init__(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> None:
        """Loads the artifact's first file. BundleError when it is of another model, lacks tensors or is damaged."""
        self._meta = meta = SpeakerMeta.parse(artifact)
        file = GgufFile(bundle.path(artifact.files[0]))
        self._backend = Backend(library(), threads_of(options))
        self._arena = Arena(self._backend, len(meta.shapes()) + 2)  # one weight comes in three parts
        self._weights: dict[str, int] = {}

        def place(name: str, values: Floats) -> None:
            self._weights[name], array = self._arena.array(values.shape)
            array[...] = values

        read_weights(file, meta, place)

    @property
    def sample_rate(self) -> int:
        """Hz."""
        return self._meta.size["sample_rate"]

    def embed(self, samples: Floats) -> Floats:
        """samples (n,) -> vector (hidden,). UsageError for a recording that is too short or too long."""
        least, most = max(self._meta.size["least_samples"], HOP * (self._meta.margin + 1)), HOP * MOST_FRAMES
        if samples.ndim != 1 or not least <= len(samples) <= most:
            raise UsageError(
                f"A recording of shape {samples.shape} has no speaker vector: from {least} to {most} samples do.",
                param="ref_audio",
            )
        mel = log_mel(samples, self.sample_rate, self._meta.size["bands"])
        # A graph of its own: recordings are rare and each of another length.
        vector = SpeakerGraph(self._backend, self._meta, self._weights, len(mel)).vector(mel)
        if not np.isfinite(vector).all():
            raise SynthesisError("The speaker encoder made a vector that is none of this model's; convert the bundle again.")
        return vector
