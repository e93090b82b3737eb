"""The codec decoder on ExecuTorch: a DecoderAdapter over a program with explicit state (see docs/decoder.md)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import Codes
from ouzel.errors import SynthesisError
from ouzel.runtimes.executorch.library import executorch
from ouzel.runtimes.executorch.program import Method, Program
from ouzel.runtimes.stateful import Samples, StatefulDecoder

DECODE = "decode"


class ExecuTorchDecoderState:
    """What one utterance's decoder remembers, in tensors of its own. frames: how many it has decoded, reference included."""

    def __init__(self, program: Program, values: dict[str, Any], frames: int = 0) -> None:
        self.frames = frames
        self._program, self._values = program, values

    def advance(self, codes: Codes, samples: Samples) -> None:
        """Run the program: codes int64 (n, groups) into `samples`, which it fills. On an error nothing moves."""
        given = executorch().torch.from_numpy(codes)
        found, *following = self._program.run(DECODE, [given, *self._values.values()])
        # XNNPACK's clamp turns what is no number into a sample, but not what the state keeps of the signal.
        if not all(np.isfinite(tensor.numpy()).all() for tensor in following):
            raise SynthesisError(f"The codec decoder's state is not finite from frame {self.frames} of the utterance on.")
        samples[...] = found.numpy()
        self._values = dict(zip(self._values, following, strict=True))
        self.frames += len(codes)

    def tensors(self) -> dict[str, NDArray[np.float32]]:
        """The current values by name, as views."""
        return {name: tensor.numpy() for name, tensor in self._values.items()}

    def clone(self) -> ExecuTorchDecoderState:
        """An independent state that goes on from here."""
        # A run replaces the tensors and changes none, so both may start from the same ones.
        return ExecuTorchDecoderState(self._program, dict(self._values), self.frames)


class ExecuTorchDecoder(StatefulDecoder[ExecuTorchDecoderState]):
    """DecoderAdapter. The state is input and output of the one program that all utterances use. It computes in float32."""

    def __init__(self, path: Path, meta: Mapping[str, Any], *, threads: int = 0) -> None:
        """path: the program of an artifact; meta: the artifact's. BundleError when they do not fit."""
        super().__init__(meta)
        inputs = {"codes": (self.meta.max_new, self.meta.groups), **self.meta.layout}
        method = Method(inputs, outputs=len(inputs))
        self._program = Program(path, {DECODE: method}, backend=str(meta.get("backend")), threads=threads)

    def _fresh(self) -> ExecuTorchDecoderState:
        torch = executorch().torch
        return ExecuTorchDecoderState(self._program, {name: torch.zeros(shape) for name, shape in self.meta.layout.items()})
