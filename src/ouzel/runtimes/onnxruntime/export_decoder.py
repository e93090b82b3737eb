"""The codec decoder as one ONNX graph: codes and state in, samples and state out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ouzel.runtimes.onnxruntime.export import export
from ouzel.runtimes.onnxruntime.quantize import FORMATS
from ouzel.runtimes.onnxruntime.sensitivity import fewest_bits
from ouzel.runtimes.onnxruntime.storage import Storage

CODES, SAMPLES = "codes", "samples"


def next_name(state: str) -> str:
    """The output that holds the new value of the state tensor `state`."""
    return f"next.{state}"


def export_decoder(
    decoder: Any, folder: Path, progress: Callable[[float], None] = lambda fraction: None, *, storage: str = "fp32"
) -> list[str]:
    """decoder.onnx: codes (frames, groups) int64 and the state by its names -> samples, and "next." + each name.

    decoder: a module with forward(codes, *state) -> (samples, *state), `.example()`, `.zero_state()`, `.spec`, whose "state"
    names the state, and `.factors`, parameters as products of smaller ones. frames is dynamic, up to `spec["max_new"]`.
    storage: of the weights in the file, "fp32", "fp16" or "int8" (of which `sensitivity` may choose 4 or 16 bits). They are
    computed with as float32 whatever it says: the cost is in the convolutions, which have no packed form.
    Returns the file names, graph first; the artifact's meta is `decoder.spec`. Raises UsageError for another storage.
    """
    stored, trying = Storage(storage, decoder.factors), 0.0
    if storage == "int8":
        trying = 0.5  # share of the time
        stored.bits = fewest_bits(decoder, lambda fraction: progress(trying * fraction))
    names = [entry["name"] for entry in decoder.spec["state"]]
    return export(
        decoder,
        folder / "decoder.onnx",
        inputs=[CODES, *names],
        outputs=[SAMPLES, *map(next_name, names)],
        dynamic={CODES: {0: "frames"}, SAMPLES: {0: "samples"}},
        format=FORMATS["fp32"],
        progress=lambda fraction: progress(trying + (1 - trying) * fraction),
        storage=stored,
    )
