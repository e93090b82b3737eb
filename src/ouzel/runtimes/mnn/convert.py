"""From an ONNX graph to MNN's format, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ouzel.errors import OuzelError
from ouzel.runtimes.mnn.library import captured, library, version
from ouzel.runtimes.mnn.module import last

WEIGHTS: dict[str, Sequence[str]] = {
    "fp32": (),
    "int8": ("--weightQuantBits=8", "--weightQuantBlock=64"),
    "int4": ("--weightQuantBits=4", "--weightQuantBlock=32"),
}
"""How weights are stored, and what the converter calls it. A block shares a scale; see docs/runtime-mnn.md."""


def to_mnn(graph: Path, out: Path, weights: str, *, beside: bool = True) -> list[str]:
    """Convert the ONNX file `graph` to `out`; the names of the files that are made, `out` first.

    beside: weights in a file of their own, which MNN then reads without holding them twice, and which may exceed 2 GB.
    OuzelError with the converter's last line when it does not succeed.
    """
    tools = library("_tools")
    exact = ["--useGeluApproximation=0"]  # else the decoder is left with 68 dB
    options = [*exact, *WEIGHTS[weights], *(["--saveExternalData"] if beside else [])]
    with captured() as lines:
        # The name of a business is required; it is written into the file.
        tools.mnnconvert(
            ["mnnconvert", "-f", "ONNX", "--modelFile", str(graph), "--MNNModel", str(out), "--bizCode", "ouzel", *options]
        )
    files = [out, out.with_name(f"{out.name}.weight")] if beside else [out]
    if not all(path.is_file() for path in files):
        raise OuzelError(f"MNN {version()} could not convert {graph.name}: {last(lines)}")
    return [path.name for path in files]
