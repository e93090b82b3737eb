"""MNN sessions: a graph with memory of its own, which lets other Python threads run meanwhile (modules do not)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import BundleError, SynthesisError
from ouzel.runtimes.mnn.library import captured, library, version
from ouzel.runtimes.mnn.module import Shape, check_tensors, last, shared

_INTEGERS, _FLOATS = np.int32, np.float32
_EXACT = 1  # MNN's precision in which all is float32
_SUCCESS = 0


class Session:
    """A graph on the CPU in float32. One thread at a time."""

    def __init__(self, path: Path, inputs: Mapping[str, Shape], outputs: Sequence[str], *, integer: str, threads: int) -> None:
        """inputs, outputs: the names that the file must have. integer: the one input of int32; all others are float32.

        BundleError when the file cannot be loaded or is of another network.
        """
        weights = path.with_name(f"{path.name}.weight")
        module = library()
        with captured() as lines:
            try:
                self._net = module.Interpreter(str(path))
                if weights.is_file():
                    self._net.setExternalFile(str(weights))
                settings = {"backend": "CPU", "precision": _EXACT, "memory": 0, "power": 0, "numThread": threads}
                self._session = self._net.createSession(settings)
            except Exception:  # MNN raises what it likes; what it printed is the reason
                self._session = None
        if self._session is None:
            raise BundleError(f"MNN {version()} cannot load {path}: {last(lines)} Convert the bundle again.")
        self._path, self._integer = path, integer
        self._given = self._net.getSessionInputAll(self._session)
        self._results = self._net.getSessionOutputAll(self._session)
        found = {name: tuple(tensor.getShape()) for name, tensor in self._given.items()}
        check_tensors(path, inputs, outputs, found, self._results)
        self._shapes: dict[str, tuple[int, ...]] = {}
        self.inputs: dict[str, NDArray[Any]] = {}
        """What to fill before a run, all of it each time: MNN reuses the memory."""
        self.outputs: dict[str, NDArray[np.float32]] = {}
        """What to read after a run."""

    def shape(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Make room for inputs of these shapes, one of each name; cheap when they are those of last time."""
        if self._shapes == shapes:
            return
        self._shapes = {}
        for name, shape in shapes.items():
            self._net.resizeTensor(self._given[name], shape)
        self._net.resizeSession(self._session)
        self.inputs = {
            name: shared(tensor.getHost(), shapes[name], _INTEGERS if name == self._integer else _FLOATS)
            for name, tensor in self._given.items()
        }
        self.outputs = {name: shared(tensor.getHost(), tensor.getShape()) for name, tensor in self._results.items()}
        self._shapes = dict(shapes)

    def run(self) -> None:
        """From `inputs` to `outputs`. SynthesisError when MNN fails."""
        code = self._net.runSession(self._session)
        if code != _SUCCESS:
            raise SynthesisError(f"MNN failed to run {self._path.name} (error {code}); there may be too little memory.")
