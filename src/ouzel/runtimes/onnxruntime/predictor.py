"""The code predictor on ONNX Runtime: one run a codebook over a static cache (PredictorCore)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import SubtalkerSampling
from ouzel.errors import BundleError
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.onnxruntime.export import cache_names
from ouzel.runtimes.onnxruntime.meta import sizes
from ouzel.runtimes.onnxruntime.session import buffer, open_session, run_bound, zeros
from ouzel.sampling import choose_residual

if TYPE_CHECKING:
    from ouzel.bundle import Artifact, Bundle


class OrtPredictor:
    """PredictorCore. One thread at a time; nothing of a frame outlives it.

    Sub-step q feeds one row and samples codebook q from head q - 1; the graph computes only that head.
    """

    def __init__(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> None:
        """Loads the artifact's first file and the bundle's embedding tables. BundleError when they do not fit."""
        meta = sizes(artifact, ("input_size", "vocab_size", "groups", "layers", "kv_heads", "head_dim", "positions"))
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
        self._length, self._length_value = zeros((1,), np.int32)
        self._head, self._head_value = zeros((1,), np.int32)
        self._logits, self._logits_value = zeros((1, meta["vocab_size"]))
        self._first, first = zeros((1, 2, meta["input_size"]))
        self._next, following = zeros((1, 1, meta["input_size"]))
        names = cache_names(meta["layers"])
        self._caches, self._whole = zeros((len(names), 1, meta["kv_heads"], meta["positions"], meta["head_dim"]))
        self._values = [buffer(layer) for layer in self._caches]
        self._binding = self._bind(names, first)
        self._binding_next = self._bind(names, following)

    def frame(
        self, hidden: NDArray[np.float32], code0: int, sampling: SubtalkerSampling, uniforms: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Codes 1.. of the frame, int64 (groups - 1,), from hidden float32 (input size,) and the sampled codebook-0 id."""
        codes = np.empty(self._groups - 1, np.int64)
        self._first[0, 0] = hidden
        self._first[0, 1] = self._codec[code0]
        binding = self._binding
        for q in range(self._groups - 1):
            self._length[0] = q + 2
            self._head[0] = q
            run_bound(self._session, binding)
            codes[q] = code = choose_residual(self._logits[0], sampling, uniforms[q])
            self._next[0, 0] = self._residual[q, code]
            binding = self._binding_next
        return codes

    def _bind(self, names: list[tuple[str, str]], rows: Any) -> Any:
        binding = self._session.io_binding()
        binding.bind_ortvalue_input("rows", rows)
        binding.bind_ortvalue_input("length", self._length_value)
        binding.bind_ortvalue_input("head", self._head_value)
        binding.bind_ortvalue_output("logits", self._logits_value)
        for (past, present), value in zip(names, self._values, strict=True):
            binding.bind_ortvalue_input(past, value)
            binding.bind_ortvalue_output(present, value)
        return binding
