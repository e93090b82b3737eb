"""A GGUF file's header: what the file says of itself and which tensors lie where, checked before anything native opens it."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import BundleError

_MAGIC, _VERSIONS = b"GGUF", (2, 3)
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9
_KEPT = 16  # values of an array that are kept; vocabularies are skipped
_MOST = 1 << 20  # entries, bytes of a name: more is damage
_ALIGNMENT = 32

# enum ggml_type: name, values a block, bytes a block
TYPES = {
    0: ("f32", 1, 4),
    1: ("f16", 1, 2),
    2: ("q4_0", 32, 18),
    3: ("q4_1", 32, 20),
    6: ("q5_0", 32, 22),
    7: ("q5_1", 32, 24),
    8: ("q8_0", 32, 34),
    12: ("q4_k", 256, 144),
    13: ("q5_k", 256, 176),
    14: ("q6_k", 256, 210),
    30: ("bf16", 1, 2),
}


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """shape: as numpy counts it, the last axis contiguous. kind: number of its ggml type. start, size: bytes, from the file's."""

    name: str
    shape: tuple[int, ...]
    kind: int
    start: int
    size: int


class GgufFile:
    """A mapped file. `values`: its metadata, None for long arrays; `tensors` by name. BundleError when damaged or no GGUF."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._at = 0
        try:
            with path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        except (OSError, ValueError) as error:
            raise BundleError(f"The model file {path} cannot be read ({error}); convert or download the bundle again.") from None
        try:
            self.values, self.tensors = self._header()
        except (struct.error, UnicodeDecodeError, IndexError, OverflowError) as error:
            raise BundleError(f"{path} is a damaged GGUF file ({error}); convert or download the bundle again.") from None

    def memory(self) -> NDArray[np.uint8]:
        """The whole file, mapped, for whoever places native tensors over it."""
        return np.frombuffer(self._map, np.uint8)

    def array(self, info: TensorInfo) -> NDArray[np.uint8]:
        """The bytes of a tensor, mapped, not copied; the file stays open as long as the array lives."""
        return np.frombuffer(self._map, np.uint8, info.size, info.start)

    def floats(self, name: str) -> NDArray[np.float32]:
        """A tensor of float32, float16 or Q8_0 as float32; BundleError when it is absent or of another type."""
        info = self.require(name)
        data = self.array(info)
        if TYPES[info.kind][0] == "q8_0":
            blocks = data.view([("scale", "<f2"), ("steps", "i1", 32)])
            values: NDArray[np.float32] = blocks["scale"].astype(np.float32)[:, None] * blocks["steps"]
            return values.reshape(info.shape)
        if info.kind > 1:
            raise BundleError(f"{self.path}: {name} is stored as {TYPES[info.kind][0]}, where f32, f16 or q8_0 is needed.")
        return data.view(np.float16 if info.kind else np.float32).reshape(info.shape).astype(np.float32)

    def require(self, name: str) -> TensorInfo:
        """The tensor called `name`."""
        if name not in self.tensors:
            raise BundleError(f"{self.path} lacks the tensor {name}; it is of another model or another version's.")
        return self.tensors[name]

    def check(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """BundleError unless every named tensor is there with this shape (leading ones aside); other tensors do not matter."""
        missing = [name for name in shapes if name not in self.tensors]
        if missing:
            more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
            raise BundleError(
                f"{self.path} lacks the tensors {', '.join(missing[:4])}{more}; it is of another model or another version's."
            )
        for name, shape in shapes.items():
            found = self.tensors[name].shape
            if _trimmed(found) != _trimmed(shape):
                raise BundleError(f"{self.path} is of another model: {name} is {found}, not {shape} as the manifest says.")

    def _header(self) -> tuple[dict[str, Any], dict[str, TensorInfo]]:
        if self._map[:4] != _MAGIC:
            raise BundleError(f"{self.path} is not a GGUF file; convert or download the bundle again.")
        self._at = 4
        version = self._scalar("I")
        if version not in _VERSIONS:
            raise BundleError(f"{self.path} is GGUF version {version}; versions {_VERSIONS[0]} to {_VERSIONS[1]} are read.")
        tensors, entries = self._count(), self._count()
        values = {self._text(): self._value(self._scalar("I")) for _ in range(entries)}
        alignment = values.get("general.alignment", _ALIGNMENT)
        if alignment not in (8, 16, 32, 64, 128, 256, 4096):
            raise IndexError(f"alignment {alignment}")
        found = [self._tensor() for _ in range(tensors)]
        base = -(-self._at // alignment) * alignment
        placed = {}
        for info in found:
            start = base + info.start
            if start + info.size > len(self._map):
                raise IndexError(f"{info.name} ends behind the file")
            placed[info.name] = TensorInfo(info.name, info.shape, info.kind, start, info.size)
        return values, placed

    def _tensor(self) -> TensorInfo:
        name = self._text()
        axes = self._scalar("I")
        if not 1 <= axes <= 4:
            raise IndexError(f"{name} has {axes} axes")
        shape = tuple(self._scalar("Q") for _ in range(axes))[::-1]
        kind, offset = self._scalar("I"), self._scalar("Q")
        if kind not in TYPES:
            raise BundleError(f"{self.path}: {name} is stored in ggml's type {kind}, which ouzel does not use.")
        _, block, size = TYPES[kind]
        count = 1
        for length in shape:
            count *= length
        if not 0 < count < 1 << 40 or shape[-1] % block:
            raise IndexError(f"{name} has the shape {shape}")
        return TensorInfo(name, shape, kind, offset, count // block * size)

    def _value(self, kind: int) -> Any:
        if kind == _TEXT:
            return self._text()
        if kind != _ARRAY:
            return self._scalar(_SCALARS.get(kind, ""))
        inner, count = self._scalar("I"), self._scalar("Q")
        if inner == _TEXT:
            for _ in range(count):
                self._at += 8 + struct.unpack_from("<Q", self._map, self._at)[0]
            return None
        form = _SCALARS.get(inner, "")
        if count > _KEPT:
            self._at += count * struct.calcsize(form)
            return None
        return tuple(self._scalar(form) for _ in range(count))

    def _scalar(self, form: str) -> Any:
        if not form:
            raise IndexError("a value of an unknown kind")
        (value,) = struct.unpack_from(f"<{form}", self._map, self._at)
        self._at += struct.calcsize(f"<{form}")
        return value

    def _text(self) -> str:
        size = self._scalar("Q")
        if size > _MOST * 8 or self._at + size > len(self._map):
            raise IndexError(f"a text of {size} bytes")
        self._at += size
        return self._map[self._at - size : self._at].decode("utf-8")

    def _count(self) -> int:
        count = self._scalar("Q")
        if count > _MOST:
            raise IndexError(f"{count} entries")
        return int(count)


def _trimmed(shape: tuple[int, ...]) -> tuple[int, ...]:
    while len(shape) > 1 and shape[0] == 1:
        shape = shape[1:]
    return shape
