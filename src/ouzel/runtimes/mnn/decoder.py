"""The codec decoder on MNN: a DecoderAdapter over a graph with explicit state (see docs/decoder.md)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import Codes
from ouzel.runtimes.mnn.module import Shape
from ouzel.runtimes.mnn.session import Session
from ouzel.runtimes.onnxruntime.export_decoder import CODES, SAMPLES, next_name
from ouzel.runtimes.stateful import Samples, StatefulDecoder, require_finite

Tensors = dict[str, NDArray[np.float32]]


class MnnDecoderState:
    """What one utterance's decoder remembers, in its own arrays. frames: how many it has decoded, reference frames included."""

    def __init__(self, session: Session, values: Tensors, frames: int = 0) -> None:
        self.frames = frames
        self._session, self._values = session, values

    def advance(self, codes: Codes, samples: Samples) -> None:
        """Run the graph: codes integers (n, groups) into `samples`, which it fills. On an error nothing moves."""
        session = self._session
        session.shape({CODES: codes.shape, **{name: array.shape for name, array in self._values.items()}})
        session.inputs[CODES][...] = codes
        for name, array in self._values.items():
            session.inputs[name][...] = array
        session.run()
        require_finite((session.outputs[next_name(name)] for name in self._values), self.frames)
        samples[...] = session.outputs[SAMPLES]
        for name, array in self._values.items():
            array[...] = session.outputs[next_name(name)]
        self.frames += len(codes)

    def tensors(self) -> Tensors:
        """The current values by name."""
        return self._values

    def clone(self) -> MnnDecoderState:
        """An independent state that goes on from here."""
        return MnnDecoderState(self._session, {name: array.copy() for name, array in self._values.items()}, self.frames)


class MnnDecoder(StatefulDecoder[MnnDecoderState]):
    """DecoderAdapter over one session, into which each call copies its state and out again (5 MB with the published codec).

    It computes in float32: half floats would be heard, and devices other than the CPU have no other precision in MNN.
    """

    def __init__(self, path: Path, meta: Mapping[str, Any], *, threads: int) -> None:
        """path: the graph of an artifact; meta: the artifact's. BundleError when they do not fit."""
        super().__init__(meta)
        inputs: dict[str, Shape] = {CODES: (None, self.meta.groups), **self.meta.layout}
        outputs = [SAMPLES, *map(next_name, self.meta.layout)]
        self._session = Session(path, inputs, outputs, integer=CODES, threads=threads)

    def _fresh(self) -> MnnDecoderState:
        return MnnDecoderState(self._session, {name: np.zeros(shape, np.float32) for name, shape in self.meta.layout.items()})
