"""The networks that read a recording as ONNX graphs: samples in; a speaker vector, rows or codes out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ouzel.runtimes.onnxruntime.export import export
from ouzel.runtimes.onnxruntime.quantize import FORMATS

SAMPLES, VECTOR, ROWS, CODES = "samples", "vector", "rows", "codes"
Done = Callable[[float], None]


def export_speaker_encoder(network: Any, folder: Path, progress: Done = lambda fraction: None) -> list[str]:
    """speaker_encoder.onnx: samples (n,) -> vector (hidden,). Returns the file names, graph first."""
    return _export(network, folder / "speaker_encoder.onnx", (SAMPLES, "n"), (VECTOR, None), progress)


def export_codec_encoder(encoder: Any, folder: Path, progress: Done = lambda fraction: None) -> list[str]:
    """codec_encoder.onnx: samples (n,) -> rows (ceil(n / hop), hidden); codec_codes.onnx: rows -> codes (frames, groups) int64.

    encoder: with the networks `.features` and `.codes`. Returns the file names, the two graphs first.
    """
    path = folder / "codec_encoder.onnx"
    first, *more = _export(encoder.features, path, (SAMPLES, "n"), (ROWS, "m"), lambda done: progress(0.3 * done))
    path = folder / "codec_codes.onnx"
    second, *rest = _export(encoder.codes, path, (ROWS, "m"), (CODES, "frames"), lambda done: progress(0.3 + 0.7 * done))
    return [first, second, *more, *rest]


def _export(network: Any, path: Path, given: tuple[str, str], made: tuple[str, str | None], progress: Done) -> list[str]:
    dynamic = {name: {0: symbol} for name, symbol in (given, made) if symbol is not None}
    return export(network, path, inputs=[given[0]], outputs=[made[0]], dynamic=dynamic, format=FORMATS["fp32"], progress=progress)
