"""The talker on ONNX Runtime: key/value buffers that the graph updates in place, bound once (TalkerCore)."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import Rows
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.meta import sizes
from ouzel.runtimes.onnxruntime.export import cache_names
from ouzel.runtimes.onnxruntime.session import bind, buffer, open_session, run_bound, zeros
from ouzel.runtimes.talkers import SizedTalker

if TYPE_CHECKING:
    from ouzel.bundle import Artifact, Bundle

_GRAIN = 256  # rows; capacities are multiples of it
_POOLED = 2  # freed buffers kept for the next states


class _Buffers:
    """Keys and values of all layers for `capacity` rows, and the binding in which each is past and present at once."""

    def __init__(self, core: OrtTalker, capacity: int) -> None:
        self.capacity = capacity
        meta = core.meta
        names = cache_names(meta["layers"])
        self.array, self._whole = zeros((len(names), 1, meta["kv_heads"], capacity, meta["head_dim"]))
        # The same memory in and out: the operator then appends in place instead of copying the whole past.
        self._values = [buffer(layer) for layer in self.array]
        inputs, outputs = core.shared()
        for (past, present), value in zip(names, self._values, strict=True):
            inputs[past] = outputs[present] = value
        self.binding = bind(core.session, inputs, outputs)


class OrtTalkerState:
    """Rows of one utterance so far: `length` of them, in buffers that no other live state has."""

    def __init__(self, buffers: _Buffers, pool: list[_Buffers]) -> None:
        self.length = 0
        self._held = [buffers]  # a list, so that the finalizer gives back what a growth has put there
        weakref.finalize(self, _give_back, self._held, pool).atexit = False

    @property
    def buffers(self) -> _Buffers:
        return self._held[0]

    def replace(self, buffers: _Buffers) -> None:
        """Go on in larger buffers."""
        buffers.array[:, :, :, : self.length] = self.buffers.array[:, :, :, : self.length]
        self._held[0] = buffers


class OrtTalker(SizedTalker):
    """TalkerCore. One thread at a time; other sessions may run meanwhile on other threads.

    Stale rows of reused buffers are never read, so results do not depend on earlier utterances.
    """

    def __init__(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> None:
        """Loads the artifact's first file. BundleError when it or its meta is unusable."""
        self.meta = sizes(
            artifact.stage, artifact.meta, ("hidden_size", "vocab_size", "layers", "kv_heads", "head_dim", "max_positions")
        )
        self.session = open_session(bundle.path(artifact.files[0]), threads=options.threads)
        self._length, self._length_value = zeros((1,), np.int32)
        self._row, self._row_value = zeros((1, 1, self.hidden_size))
        self._hidden, self._hidden_value = zeros((1, self.hidden_size))
        self._logits, self._logits_value = zeros((1, self.vocab_size))
        # Bound now, so that a graph of another version is refused at load and not at the first utterance.
        self._pool = [_Buffers(self, min(_GRAIN, self.max_positions))]

    def start(self, positions: int) -> OrtTalkerState:
        """An empty state with room for at least `positions` rows; it doubles as needed, up to max_positions."""
        return OrtTalkerState(self._take(positions), self._pool)

    def forward(self, state: OrtTalkerState, rows: Rows) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Append rows float32 (n, hidden), n >= 1; (hidden (H,), logits (V,)) of the last one, fresh arrays."""
        count, length = len(rows), self._length_with(state.length, rows)
        if length > state.buffers.capacity:
            state.replace(self._take(max(length, 2 * state.buffers.capacity)))
        binding = state.buffers.binding
        self._length[0] = length
        if count == 1:
            self._row[0] = rows
            run_bound(self.session, binding)
        else:
            prompt = np.ascontiguousarray(rows[np.newaxis], np.float32)
            binding.bind_ortvalue_input("rows", buffer(prompt))
            try:
                run_bound(self.session, binding)
            finally:
                binding.bind_ortvalue_input("rows", self._row_value)
        state.length = length
        return self._hidden[0].copy(), self._logits[0].copy()

    def shared(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Inputs and outputs that all states share: a step's row and length; the results, which are copied out after each run."""
        inputs = {"rows": self._row_value, "length": self._length_value}
        return inputs, {"hidden": self._hidden_value, "logits": self._logits_value}

    def _take(self, positions: int) -> _Buffers:
        capacity = min(-(-max(positions, 1) // _GRAIN) * _GRAIN, self.max_positions)
        fitting = [buffers for buffers in self._pool if capacity <= buffers.capacity <= 2 * capacity]
        for chosen in sorted(fitting, key=lambda buffers: buffers.capacity):
            try:
                self._pool.remove(chosen)
            except ValueError:  # a state that another thread dropped just now has pushed it out
                continue
            return chosen
        return _Buffers(self, capacity)


def _give_back(held: list[_Buffers], pool: list[_Buffers]) -> None:
    pool.extend(held)
    del pool[:-_POOLED]
