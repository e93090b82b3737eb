"""Writing a GGUF file a tensor at a time: each weight is read, rounded and written before the next, so memory holds one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import MissingExtraError
from ouzel.runtimes.llama_cpp.library import INSTALL

Floats = NDArray[np.float32]

FP32, F16, Q8_0, Q4_0 = "fp32", "f16", "q8_0", "q4_0"
WEIGHTS = (Q4_0, Q8_0, F16, FP32)
"""How talker and code predictor can be stored, the default first."""
_TYPE_NAMES = {FP32: "F32", F16: "F16", Q8_0: "Q8_0", Q4_0: "Q4_0"}
_BLOCK = 32  # values that share a scale in both packed types


@dataclass(frozen=True, slots=True)
class Weight:
    """A tensor to write. shape: numpy's order. read: gives it as float32, called once. kind: one of WEIGHTS."""

    name: str
    shape: tuple[int, ...]
    kind: str
    read: Callable[[], Floats]


def gguf() -> Any:
    """The gguf module; MissingExtraError when it is not installed."""
    try:
        import gguf as module
    except ImportError as error:
        raise MissingExtraError(f"Writing GGUF files needs gguf ({error}); install it with: {INSTALL}.") from error
    return module


def fitting(kind: str, shape: tuple[int, ...]) -> str:
    """`kind`, or F16 for a tensor whose rows are no whole number of blocks."""
    return F16 if kind in (Q8_0, Q4_0) and shape[-1] % _BLOCK else kind


def write(
    path: Path,
    architecture: str,
    values: dict[str, Any],
    weights: Iterable[Weight],
    progress: Callable[[float], None] = lambda fraction: None,
) -> None:
    """Write `path`. values: metadata by full key: str, bool, int (as uint32), float (float32) or a list of ints (int32)."""
    module = gguf()
    logging.getLogger("gguf").setLevel(logging.WARNING)  # it tells its plan at INFO
    writer = module.GGUFWriter(path, architecture)
    for key, value in values.items():
        _add(writer, key, value)
    weights = list(weights)
    for weight in weights:
        kind = module.GGMLQuantizationType[_TYPE_NAMES[weight.kind]]
        stored = module.quant_shape_to_byte_shape(weight.shape, kind) if weight.kind in (Q8_0, Q4_0) else weight.shape
        dtype = {FP32: np.float32, F16: np.float16}.get(weight.kind, np.uint8)
        size = int(np.prod(stored)) * np.dtype(dtype).itemsize
        writer.add_tensor_info(weight.name, stored, np.dtype(dtype), size, kind)
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for done, weight in enumerate(weights):
            kind = module.GGMLQuantizationType[_TYPE_NAMES[weight.kind]]
            array = np.ascontiguousarray(weight.read(), np.float32).reshape(weight.shape)
            writer.write_tensor_data(module.quants.quantize(array, kind))
            progress((done + 1) / len(weights))
    finally:
        writer.close()


def _add(writer: Any, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)
