"""The talker on ExecuTorch: keys and values belong to the state and are written in place by the program (TalkerCore)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import Rows
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.executorch.caches import KEYS, cache_inputs, empty_caches
from ouzel.runtimes.executorch.library import executorch
from ouzel.runtimes.executorch.program import Method, Program
from ouzel.runtimes.meta import sizes
from ouzel.runtimes.talkers import SizedTalker

if TYPE_CHECKING:
    from ouzel.bundle import Artifact, Bundle

FORWARD = "forward"


class ExecuTorchTalkerState:
    """Rows of one utterance so far: `length` of them, in buffers of its own with room for all positions.

    They are zero pages that the system hands out when they are first written, so room costs no memory until it is used.
    """

    def __init__(self, caches: list[Any]) -> None:
        self.length = 0
        self.caches = caches


class ExecuTorchTalker(SizedTalker):
    """TalkerCore. One thread at a time; states share nothing but the program, which keeps nothing between calls."""

    def __init__(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> None:
        """Loads the artifact's first file. BundleError when it or its meta is unusable."""
        keys = ("hidden_size", "vocab_size", "max_positions", "max_rows", *KEYS)
        self.meta = meta = sizes(artifact.stage, artifact.meta, keys)
        self._torch = executorch().torch
        inputs = {"rows": (1, meta["max_rows"], self.hidden_size), "positions": (meta["max_rows"],)}
        method = Method(inputs | cache_inputs(meta, self.max_positions), outputs=2)
        path: Path = bundle.path(artifact.files[0])
        self._program = Program(path, {FORWARD: method}, backend=str(artifact.meta.get("backend")), threads=options.threads)
        self._positions = self._torch.arange(self.max_positions)

    def start(self, positions: int) -> ExecuTorchTalkerState:
        """An empty state; it has room for max_positions rows whatever `positions` says."""
        return ExecuTorchTalkerState(empty_caches(self._torch, self.meta, self.max_positions))

    def forward(self, state: ExecuTorchTalkerState, rows: Rows) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Append rows float32 (n, hidden), n >= 1; (hidden (H,), logits (V,)) of the last one, fresh arrays.

        More rows than the program's bound are run in pieces of that size.
        """
        self._length_with(state.length, rows)
        given = self._torch.from_numpy(np.ascontiguousarray(rows[np.newaxis], np.float32))
        bound = self.meta["max_rows"]
        for first in range(0, len(rows), bound):
            piece = given[:, first : first + bound]
            last = state.length + piece.shape[1]
            hidden, logits = self._program.run(FORWARD, [piece, self._positions[state.length : last], *state.caches])
            state.length = last
        return hidden[0].numpy(), logits[0].numpy()
