"""The codec decoder on OpenVINO: a DecoderAdapter over a graph with explicit state (see docs/decoder.md)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import Codes
from ouzel.errors import BundleError, SynthesisError
from ouzel.runtimes.onnxruntime.export_decoder import CODES, SAMPLES, next_name
from ouzel.runtimes.openvino.library import core, openvino, version
from ouzel.runtimes.openvino.snake import polynomial_sines
from ouzel.runtimes.stateful import Samples, StatefulDecoder, require_finite

Tensors = dict[str, NDArray[np.float32]]


class OpenVinoState:
    """What one utterance's decoder remembers: two sets of arrays, which the graph reads and writes in turn.

    frames: how many it has decoded, reference frames included. One thread at a time.
    """

    def __init__(self, request: Any, layout: Mapping[str, tuple[int, ...]]) -> None:
        self.frames = 0
        self._request, self._layout = request, layout
        self._sets: list[Tensors] = [{name: np.zeros(shape, np.float32) for name, shape in layout.items()} for _ in range(2)]
        self._tensors = [{name: shared(array) for name, array in arrays.items()} for arrays in self._sets]
        self._current = 0

    def advance(self, codes: Codes, samples: Samples) -> None:
        """Run the graph: codes int64 (n, groups) into `samples`, a contiguous array that it fills. On an error nothing moves."""
        request, source, target = self._request, self._tensors[self._current], self._tensors[1 - self._current]
        try:
            request.set_tensor(CODES, shared(np.ascontiguousarray(codes)))
            request.set_tensor(SAMPLES, shared(samples))
            for name in self._layout:
                request.set_tensor(name, source[name])
                request.set_tensor(next_name(name), target[name])
            request.infer()
        except RuntimeError as error:
            raise SynthesisError(f"OpenVINO failed to decode: {first_line(error)}") from error
        require_finite(self._sets[1 - self._current].values(), self.frames)
        self._current = 1 - self._current
        self.frames += len(codes)

    def tensors(self) -> Tensors:
        """The current values by name; views that the next call but one overwrites."""
        return self._sets[self._current]

    def clone(self) -> OpenVinoState:
        """An independent state that goes on from here."""
        twin = OpenVinoState(self._request, self._layout)
        for name, array in twin.tensors().items():
            array[...] = self._sets[self._current][name]
        twin.frames = self.frames
        return twin


class OpenVinoDecoder(StatefulDecoder[OpenVinoState]):
    """DecoderAdapter. One thread at a time; Python's lock is free while it computes."""

    def __init__(self, path: Path, meta: Mapping[str, Any], *, precision: str, threads: int) -> None:
        """path: the .xml of an artifact, its .bin beside it; meta: the artifact's. precision: "f32" or "bf16".

        BundleError when the files cannot be loaded or do not fit the meta.
        """
        super().__init__(meta)
        try:
            model = core().read_model(str(path))
        except RuntimeError as error:
            raise BundleError(
                f"OpenVINO {version()} cannot load {path}: {first_line(error)} Convert the bundle again."
            ) from error
        found = {value.any_name: tuple(value.partial_shape.to_shape()) for value in model.inputs if value.any_name != CODES}
        absent = [*(set(self.meta.layout) - set(found)), *(set(found) - set(self.meta.layout))]
        if absent or found != self.meta.layout:
            names = sorted(absent) or [name for name, shape in self.meta.layout.items() if found[name] != shape]
            raise BundleError(f"{path} has other state tensors than the manifest says ({', '.join(names)}); convert it again.")
        polynomial_sines(model)
        settings = {
            # Never left open: OpenVINO would take bfloat16 by itself where the CPU has it, and leave 37 dB.
            "INFERENCE_PRECISION_HINT": precision,
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            "ENABLE_CPU_PINNING": False,  # another stage runs beside it
        }
        try:
            self._request = core().compile_model(model, "CPU", settings).create_infer_request()
        except RuntimeError as error:
            raise BundleError(f"OpenVINO {version()} cannot compile {path}: {first_line(error)}") from error

    def _fresh(self) -> OpenVinoState:
        return OpenVinoState(self._request, self.meta.layout)


def shared(array: NDArray[Any]) -> Any:
    """A tensor over the memory of a C-contiguous array."""
    return openvino().Tensor(array, shared_memory=True)


def first_line(error: BaseException) -> str:
    """What OpenVINO says, without the places in its sources, as a sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and not line.startswith("Exception from")]
    line = lines[-1] if lines else type(error).__name__
    return line if line.endswith(".") else f"{line}."
