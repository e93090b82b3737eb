"""The code predictor on MNN: one run of the body and one of a head for each codebook (PredictorCore)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import SubtalkerSampling
from ouzel.errors import BundleError
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.meta import sizes
from ouzel.runtimes.mnn import probe
from ouzel.runtimes.mnn.module import LOW, Graph
from ouzel.runtimes.mnn.transformer import Transformer
from ouzel.runtimes.onnxruntime.export_plain import HIDDEN, LOGITS
from ouzel.sampling import choose_residual

if TYPE_CHECKING:
    from ouzel.bundle import Artifact, Bundle


class MnnPredictor:
    """PredictorCore. One thread at a time; nothing of a frame outlives it."""

    def __init__(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> None:
        """Loads the body and the heads, and the bundle's embedding tables. BundleError when they do not fit."""
        keys = ("input_size", "hidden_size", "vocab_size", "groups", "layers", "kv_heads", "head_dim", "heads", "positions")
        meta = sizes(artifact.stage, artifact.meta, keys)
        # As plain arrays over the mapped files: only rows that are used are ever read.
        self._codec = bundle.array("tables/codec.npy").view(np.ndarray)
        self._residual = bundle.array("tables/residual.npy").view(np.ndarray)
        wanted = (meta["groups"] - 1, meta["vocab_size"], meta["input_size"])
        if self._residual.shape != wanted or self._codec.shape[1:] != wanted[2:]:
            raise BundleError(
                f"The bundle's embedding tables are {self._codec.shape} and {self._residual.shape}, but the code predictor needs "
                f"(codes, {wanted[2]}) and {wanted}; convert the bundle again."
            )
        body, *heads = (bundle.path(name) for name in artifact.files if name.endswith(".mnn"))
        if len(heads) != wanted[0]:
            raise BundleError(f"The code predictor needs {wanted[0]} heads, the bundle has {len(heads)}; convert it again.")
        # Packed weights are multiplied by rows rounded to 8 bits, one scale a row: a predictor loses its small values there.
        small = artifact.weights != "fp32" and options.precision == LOW
        self._stack = Transformer(
            lambda inputs, outputs: Graph(body, inputs, outputs, options, small=small),
            {HIDDEN: (1, meta["hidden_size"])},
            meta,
            meta["input_size"],
        )
        self._heads = [Graph(path, {HIDDEN: (1, meta["hidden_size"])}, [LOGITS], options, small=small) for path in heads]
        found = {}
        (state,) = self._stack.run(self._stack.cache(1), probe.row(meta["input_size"]))
        for q, head in enumerate(self._heads, 1):
            head.expect([state], {LOGITS: (1, meta["vocab_size"])})
            found[f"{LOGITS}.{q}"] = head.run([state])[0].read()[0].copy()
        probe.check("code predictor", artifact.weights, artifact.meta, found)
        self._cache = self._stack.cache(meta["positions"])
        self._first = np.empty((2, meta["input_size"]), np.float32)

    def frame(
        self, hidden: NDArray[np.float32], code0: int, sampling: SubtalkerSampling, uniforms: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Codes 1.. of the frame, int64 (groups - 1,), from hidden float32 (input size,) and the sampled codebook-0 id.

        SynthesisError when what a codebook is chosen from is not finite.
        """
        self._cache.clear()
        self._first[0] = hidden
        self._first[1] = self._codec[code0]
        rows, codes = self._first, np.empty(len(self._heads), np.int64)
        for q, head in enumerate(self._heads):
            state = self._stack.run(self._cache, rows, keep=True)
            codes[q] = choose_residual(head.run(state)[0].read()[0], sampling, float(uniforms[q]))
            rows = self._residual[q, codes[q]][np.newaxis]
        return codes
