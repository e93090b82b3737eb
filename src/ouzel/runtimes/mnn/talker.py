"""The talker on MNN (TalkerCore)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import Rows
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.meta import sizes
from ouzel.runtimes.mnn import probe
from ouzel.runtimes.mnn.module import Graph
from ouzel.runtimes.mnn.transformer import Cache, Transformer
from ouzel.runtimes.onnxruntime.export_plain import HIDDEN, LOGITS
from ouzel.runtimes.talkers import SizedTalker

if TYPE_CHECKING:
    from ouzel.bundle import Artifact, Bundle

_GRAIN = 256  # rows; capacities are multiples of it. The graph computes with all of a buffer, so it grows by one grain only
_PIECE = 32  # prompt rows of one run: Python's lock is held meanwhile, and an audio callback may be waiting for it


class MnnTalkerState:
    """Rows of one utterance so far, in buffers of its own."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache

    @property
    def length(self) -> int:
        """Rows so far."""
        return self.cache.length


class MnnTalker(SizedTalker):
    """TalkerCore. One thread at a time. A step writes its own keys and values and copies none of the past."""

    def __init__(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> None:
        """Loads the artifact's first file. BundleError when it or its meta is unusable."""
        keys = ("hidden_size", "vocab_size", "layers", "kv_heads", "head_dim", "heads", "max_positions")
        self.meta = sizes(artifact.stage, artifact.meta, keys)
        small = artifact.weights != "fp32"
        path = bundle.path(artifact.files[0])
        self._stack = Transformer(
            lambda inputs, outputs: Graph(path, inputs, outputs, options, small=small),
            {HIDDEN: (1, self.hidden_size), LOGITS: (1, self.vocab_size)},
            self.meta,
            self.hidden_size,
        )
        hidden, logits = self.forward(MnnTalkerState(self._stack.cache(1)), probe.row(self.hidden_size))
        probe.check("talker", artifact.weights, artifact.meta, {HIDDEN: hidden, LOGITS: logits})

    def start(self, positions: int) -> MnnTalkerState:
        """An empty state with room for 256 rows; it grows by as many when it must, whatever `positions` foresees."""
        return MnnTalkerState(self._stack.cache(self._capacity(1)))

    def forward(self, state: MnnTalkerState, rows: Rows) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Append rows float32 (n, hidden), n >= 1; (hidden (H,), logits (V,)) of the last one, fresh arrays."""
        count, length = len(rows), self._length_with(state.length, rows)
        if length > state.cache.capacity:
            state.cache = state.cache.copy_to(self._stack.cache(self._capacity(length)))
        for start in range(0, count, _PIECE):
            hidden, logits = self._stack.run(state.cache, rows[start : start + _PIECE], keep=count == 1)
        return hidden.read()[0].copy(), logits.read()[0].copy()

    def _capacity(self, positions: int) -> int:
        return min(-(-positions // _GRAIN) * _GRAIN, self.max_positions)
