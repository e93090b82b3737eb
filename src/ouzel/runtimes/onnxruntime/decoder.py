"""The codec decoder on ONNX Runtime: a DecoderAdapter over a graph with explicit state (see docs/decoder.md)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import Codes
from ouzel.errors import BundleError
from ouzel.runtimes.onnxruntime.export_decoder import CODES, SAMPLES, next_name
from ouzel.runtimes.onnxruntime.session import buffer, open_session, run_bound, session_options, zeros
from ouzel.runtimes.stateful import Samples, StatefulDecoder


class DecoderState:
    """What one utterance's decoder remembers: two sets of state tensors, read and written in turn.

    frames: how many frames it has decoded, reference frames included. One thread at a time.
    """

    def __init__(self, session: Any, layout: Mapping[str, tuple[int, ...]]) -> None:
        self.frames = 0
        self._session, self._layout = session, layout
        self._sets = [{name: zeros(shape) for name, shape in layout.items()} for _ in range(2)]
        self._current = 0
        # Bound once: a call then changes two bindings, not one a tensor.
        self._bindings = [self._bind(self._sets[i], self._sets[1 - i]) for i in range(2)]

    def _bind(self, source: Mapping[str, tuple[Any, Any]], target: Mapping[str, tuple[Any, Any]]) -> Any:
        binding = self._session.io_binding()
        for name, (_, value) in source.items():
            binding.bind_ortvalue_input(name, value)
        for name, (_, value) in target.items():
            binding.bind_ortvalue_output(next_name(name), value)
        return binding

    def advance(self, codes: Codes, samples: Samples) -> None:
        """Run the graph: codes int64 (n, groups) into `samples`, a contiguous array that it fills. On an error nothing moves."""
        binding = self._bindings[self._current]
        binding.bind_ortvalue_input(CODES, buffer(codes))
        binding.bind_ortvalue_output(SAMPLES, buffer(samples))
        run_bound(self._session, binding)
        self._current = 1 - self._current
        self.frames += len(codes)

    def tensors(self) -> dict[str, NDArray[np.float32]]:
        """The current values by name; views that the next call but one overwrites."""
        return {name: array for name, (array, _) in self._sets[self._current].items()}

    def clone(self) -> DecoderState:
        """An independent state that goes on from here."""
        twin = DecoderState(self._session, self._layout)
        for name, array in twin.tensors().items():
            array[...] = self._sets[self._current][name][0]
        twin.frames = self.frames
        return twin


class OrtDecoder(StatefulDecoder[DecoderState]):
    """DecoderAdapter over a session of ONNX Runtime."""

    def __init__(self, path: Path, meta: Mapping[str, Any], *, threads: int = 0) -> None:
        """path: the graph of an artifact; meta: the artifact's. BundleError when they do not fit."""
        super().__init__(meta)
        options = session_options(threads)
        # A memory plan is kept for each number of frames, in blocks of their own: 50 MB more with the published codec, no faster.
        options.enable_mem_pattern = False
        self._session = open_session(path, options=options)
        found = {value.name: tuple(value.shape) for value in self._session.get_inputs()}
        found.pop(CODES, None)
        if found != self.meta.layout:
            raise BundleError(f"{path} has other state tensors than the manifest says; convert the bundle again.")

    def _fresh(self) -> DecoderState:
        return DecoderState(self._session, self.meta.layout)
