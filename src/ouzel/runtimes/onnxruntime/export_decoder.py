"""The codec decoder as one ONNX graph: codes and state in, samples and state out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ouzel.runtimes.onnxruntime.export import export
from ouzel.runtimes.onnxruntime.quantize import FORMATS

CODES, SAMPLES = "codes", "samples"


def next_name(state: str) -> str:
    """The output that holds the new value of the state tensor `state`."""
    return f"next.{state}"


def export_decoder(decoder: Any, folder: Path, progress: Callable[[float], None] = lambda fraction: None) -> list[str]:
    """decoder.onnx: codes (frames, groups) int64 and the state by its names -> samples, and "next." + each name.

    decoder: a module with forward(codes, *state) -> (samples, *state), `.example()`, and `.spec["state"]` naming the state.
    frames is dynamic, up to `spec["max_new"]`. Weights stay float32: the cost is in the convolutions, which have no packed form.
    Returns the file names, graph first; the artifact's meta is `decoder.spec`.
    """
    names = [entry["name"] for entry in decoder.spec["state"]]
    return export(
        decoder,
        folder / "decoder.onnx",
        inputs=[CODES, *names],
        outputs=[SAMPLES, *map(next_name, names)],
        dynamic={CODES: {0: "frames"}, SAMPLES: {0: "samples"}},
        format=FORMATS["fp32"],
        progress=progress,
    )
