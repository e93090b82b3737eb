"""One safetensors file, read a tensor at a time and written as a stream. Never pickle.

Layout: little-endian uint64 header length, a JSON header {name: {dtype, shape, data_offsets}}, then the raw values.
Own reader and writer because bfloat16 must become float32 without torch, every offset must be checked before it is used,
and a 1.7B random checkpoint must be written without holding it in memory.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import CheckpointError

Shape = tuple[int, ...]
Floats = NDArray[np.float32]
# on-disk types that hold weights -> (numpy storage type, bytes)
STORAGE: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
MAX_HEADER = 100 << 20  # the format's own limit


class Shard:
    """An open file. `tensors` maps each name to (dtype on disk, shape)."""

    def __init__(self, path: Path) -> None:
        """Reads and checks the header only. CheckpointError when the file is missing, truncated or not safetensors."""
        self.path = path
        try:
            size = path.stat().st_size
            with path.open("rb") as file:
                prefix = file.read(8)
                length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else 0
                if not 2 <= length <= min(MAX_HEADER, size - 8):
                    raise CheckpointError(f"{path} is not a safetensors file or is truncated; download it again.")
                header = json.loads(file.read(length))
                if not isinstance(header, dict):
                    raise ValueError("not an object")
        except OSError as e:
            raise CheckpointError(f"{path} cannot be read ({e.strerror}).") from e
        except (ValueError, RecursionError) as e:
            raise CheckpointError(f"{path} has a damaged safetensors header; download it again.") from e
        self._start = 8 + length
        self._entries: dict[str, tuple[str, Shape, int, int]] = {}
        header.pop("__metadata__", None)
        for name, entry in header.items():
            self._entries[name] = self._entry(name, entry, size - self._start)
        self.tensors: dict[str, tuple[str, Shape]] = {n: (e[0], e[1]) for n, e in self._entries.items()}

    def _entry(self, name: str, entry: Any, available: int) -> tuple[str, Shape, int, int]:
        try:
            dtype, shape = str(entry["dtype"]), tuple(int(n) for n in entry["shape"])
            begin, end = (int(n) for n in entry["data_offsets"])
        except (KeyError, TypeError, ValueError, OverflowError) as e:
            raise CheckpointError(f"{self.path}: the header entry of {name} is damaged; download the file again.") from e
        if not 0 <= begin <= end <= available:
            raise CheckpointError(f"{self.path} is truncated: {name} ends at byte {end} of {available}; download it again.")
        if dtype in STORAGE and end - begin != math.prod(shape) * STORAGE[dtype].itemsize:
            raise CheckpointError(f"{self.path}: {name} has shape {shape} but {end - begin} bytes; download the file again.")
        return dtype, shape, begin, end

    def read(self, name: str, rows: slice | None = None) -> Floats:
        """Tensor `name` as a fresh float32 array, or only `rows` of its first axis.

        Raises CheckpointError when the stored type is not F32, F16 or BF16, or when a value is NaN or infinite.
        """
        dtype, shape, begin, _ = self._entries[name]
        if dtype not in STORAGE:
            raise CheckpointError(f"{self.path}: {name} is stored as {dtype}; weights must be one of {', '.join(STORAGE)}.")
        storage, count = STORAGE[dtype], math.prod(shape)
        if rows is not None:
            first, last, _ = rows.indices(shape[0])
            per_row = count // shape[0]
            begin, count, shape = begin + first * per_row * storage.itemsize, (last - first) * per_row, (last - first, *shape[1:])
        raw = np.fromfile(self.path, dtype=storage, count=count, offset=self._start + begin)
        if raw.size != count:
            raise CheckpointError(f"{self.path} became shorter while it was read.")
        values: Floats
        values = (raw.astype(np.uint32) << 16).view(np.float32) if dtype == "BF16" else raw.astype(np.float32, copy=False)
        if not np.isfinite(values).all():
            raise CheckpointError(f"{self.path}: {name} holds NaN or infinite values; the checkpoint is damaged.")
        return values.reshape(shape)


def to_bfloat16(values: Floats) -> NDArray[np.uint16]:
    """Round finite float32 to bfloat16 bit patterns, to nearest, ties to even."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def write_shard(path: Path, shapes: Mapping[str, Shape], dtype: str, blocks: Callable[[str, Shape], Iterable[Floats]]) -> int:
    """Write `path` a block at a time; returns its size in bytes.

    `blocks(name, shape)` yields float32 arrays that hold the tensor's values in order; `dtype` is F32, F16 or BF16.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, shape in shapes.items():
        end = offset + math.prod(shape) * STORAGE[dtype].itemsize
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # aligned values
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes.items():
            for values in blocks(name, shape):
                stored = to_bfloat16(values) if dtype == "BF16" else values.astype(STORAGE[dtype], copy=False)
                stored.tofile(file)
    return 8 + len(text) + offset
