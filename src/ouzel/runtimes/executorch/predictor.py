"""The code predictor on ExecuTorch: a run of the body and one of a head for each codebook (PredictorCore)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import SubtalkerSampling
from ouzel.errors import BundleError
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.executorch.caches import KEYS, cache_inputs, empty_caches
from ouzel.runtimes.executorch.library import executorch
from ouzel.runtimes.executorch.program import Method, Program
from ouzel.runtimes.meta import sizes
from ouzel.sampling import choose_residual

if TYPE_CHECKING:
    from ouzel.bundle import Artifact, Bundle

BODY = "body"
FIRST_ROWS = 2  # the talker's hidden vector and the embedding of codebook 0


def head(q: int) -> str:
    """The method that gives the logits of codebook q."""
    return f"head_{q}"


class ExecuTorchPredictor:
    """PredictorCore. One thread at a time; rows of earlier frames lie in the buffers but are never read."""

    def __init__(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> None:
        """Loads the artifact's first file and the bundle's embedding tables. BundleError when they do not fit."""
        keys = ("input_size", "hidden_size", "vocab_size", "groups", "positions", *KEYS)
        meta = sizes(artifact.stage, artifact.meta, keys)
        # As plain arrays over the mapped files: only rows that are used are ever read.
        self._codec = bundle.array("tables/codec.npy").view(np.ndarray)
        self._residual = bundle.array("tables/residual.npy").view(np.ndarray)
        self._groups, width = meta["groups"], meta["input_size"]
        wanted = (self._groups - 1, meta["vocab_size"], width)
        if self._residual.shape != wanted or self._codec.shape[1:] != wanted[2:]:
            raise BundleError(
                f"The bundle's embedding tables are {self._codec.shape} and {self._residual.shape}, but the code predictor needs "
                f"(codes, {width}) and {wanted}; convert the bundle again."
            )
        torch = executorch().torch
        inputs = {"rows": (1, FIRST_ROWS, width), "positions": (FIRST_ROWS,)}
        methods = {BODY: Method(inputs | cache_inputs(meta, meta["positions"]), outputs=1)}
        methods |= {head(q): Method({"hidden": (1, meta["hidden_size"])}, outputs=1) for q in range(1, self._groups)}
        path = bundle.path(artifact.files[0])
        self._program = Program(path, methods, backend=str(artifact.meta.get("backend")), threads=options.threads)
        self._first, self._next = np.zeros((1, FIRST_ROWS, width), np.float32), np.zeros((1, 1, width), np.float32)
        positions, caches = torch.arange(self._groups), empty_caches(torch, meta, meta["positions"])
        first, following = torch.from_numpy(self._first), torch.from_numpy(self._next)
        self._inputs = [[first, positions[:FIRST_ROWS], *caches]]
        self._inputs += [[following, positions[i : i + 1], *caches] for i in range(FIRST_ROWS, self._groups)]

    def frame(
        self, hidden: NDArray[np.float32], code0: int, sampling: SubtalkerSampling, uniforms: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Codes 1.. of the frame, int64 (groups - 1,), from hidden float32 (input size,) and the sampled codebook-0 id.

        SynthesisError when the logits of any codebook are not finite.
        """
        self._first[0, 0] = hidden
        self._first[0, 1] = self._codec[code0]
        codes = np.empty(self._groups - 1, np.int64)
        for i, inputs in enumerate(self._inputs):
            if i:
                self._next[0, 0] = self._residual[i - 1, codes[i - 1]]
            (logits,) = self._program.run(head(i + 1), self._program.run(BODY, inputs))
            codes[i] = choose_residual(logits[0].numpy(), sampling, float(uniforms[i]))
        return codes
