"""The code predictor on ONNX Runtime: one run a codebook over a static cache (PredictorCore)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import SubtalkerSampling
from ouzel.errors import BundleError, SynthesisError
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.meta import sizes
from ouzel.runtimes.onnxruntime.export import cache_names
from ouzel.runtimes.onnxruntime.session import bind, buffer, open_session, run_bound, zeros
from ouzel.sampling import is_greedy

if TYPE_CHECKING:
    from ouzel.bundle import Artifact, Bundle


class OrtPredictor:
    """PredictorCore. One thread at a time; nothing of a frame outlives it.

    A sub-step feeds one row, computes one head, samples its code and looks up the next row, all in the graph.
    """

    def __init__(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> None:
        """Loads the artifact's first file and the bundle's embedding tables. BundleError when they do not fit."""
        meta = sizes(
            artifact.stage, artifact.meta, ("input_size", "vocab_size", "groups", "layers", "kv_heads", "head_dim", "positions")
        )
        self._groups = meta["groups"]
        # As plain arrays over the mapped files: only rows that are used are ever read.
        self._codec = bundle.array("tables/codec.npy").view(np.ndarray)
        self._residual = bundle.array("tables/residual.npy").view(np.ndarray)
        wanted = (self._groups - 1, meta["vocab_size"], meta["input_size"])
        if self._residual.shape != wanted or self._codec.shape[1:] != wanted[2:]:
            raise BundleError(
                f"The bundle's embedding tables are {self._codec.shape} and {self._residual.shape}, but the code predictor needs "
                f"(codes, {wanted[2]}) and {wanted}; convert the bundle again."
            )
        self._session = open_session(bundle.path(artifact.files[0]), threads=options.threads)
        self._vocab = meta["vocab_size"]
        self._kept: list[Any] = []
        steps = self._groups - 1
        self._uniforms = np.zeros(steps, np.float32)
        self._sharpness, self._sharpness_value = zeros((1,))
        self._top_k, self._top_k_value = zeros((1,), np.int64)
        self._codes = np.zeros((steps, 1), np.int64)
        self._checks = np.zeros(steps, np.float32)
        self._first, self._first_value = zeros((1, 2, meta["input_size"]))
        self._rows = [zeros((1, 1, meta["input_size"])) for _ in range(2)]  # a sub-step's row and the next one's, in turn
        names = cache_names(meta["layers"])
        self._caches, self._whole = zeros((len(names), 1, meta["kv_heads"], meta["positions"], meta["head_dim"]))
        self._table = buffer(np.ascontiguousarray(self._residual.reshape(-1, meta["input_size"]), np.float32))
        caches = [(past, present, buffer(layer)) for (past, present), layer in zip(names, self._caches, strict=True)]
        self._bindings = [self._bind(q, caches) for q in range(steps)]

    def frame(
        self, hidden: NDArray[np.float32], code0: int, sampling: SubtalkerSampling, uniforms: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Codes 1.. of the frame, int64 (groups - 1,), from hidden float32 (input size,) and the sampled codebook-0 id.

        SynthesisError when the logits of any codebook are not finite.
        """
        self._first[0, 0] = hidden
        self._first[0, 1] = self._codec[code0]
        if is_greedy(sampling):
            self._top_k[0] = 1
        else:
            self._uniforms[:] = uniforms
            self._sharpness[0] = 1 / sampling.temperature
            self._top_k[0] = sampling.top_k if 0 < sampling.top_k < self._vocab else self._vocab
        for binding in self._bindings:
            run_bound(self._session, binding)
        if not np.isfinite(self._checks).all():
            raise SynthesisError("The code predictor gave logits that are not finite; its weights or precision are unusable.")
        return self._codes[:, 0].copy()

    def _bind(self, step: int, caches: list[tuple[str, str, Any]]) -> Any:
        """All of a sub-step, once: what it reads and writes lies at the same place in every frame."""
        one = slice(step, step + 1)
        values = {
            "rows": self._rows[step % 2][1] if step else self._first_value,
            "length": buffer(np.array([step + 2], np.int32)),
            "head": buffer(np.array([step], np.int32)),
            "uniform": buffer(self._uniforms[one]),
            "sharpness": self._sharpness_value,
            "top_k": self._top_k_value,
            "table": self._table,
            "start": buffer(np.array([step * self._vocab])),
        }
        results = {"code": buffer(self._codes[one]), "row": self._rows[(step + 1) % 2][1], "check": buffer(self._checks[one])}
        for past, present, value in caches:
            values[past] = results[present] = value
        self._kept.append((values, results))  # a binding does not keep the arrays behind its values alive
        return bind(self._session, values, results)
