"""A stack of transformer layers on MNN over key/value buffers that the graph only reads (see `onnxruntime.export_plain`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import SynthesisError
from ouzel.runtimes.mnn.module import Buffer, Graph, Shape
from ouzel.runtimes.onnxruntime.export import cache_names
from ouzel.runtimes.onnxruntime.export_plain import CAUSAL, FRESH, HIDE, POSITIONS, ROWS, STORED

Floats = NDArray[np.float32]


class Cache:
    """Keys and values of all layers for `capacity` rows, `length` of them stored; all finite: masked rows enter times 0."""

    def __init__(self, layers: int, kv_heads: int, head_dim: int, capacity: int) -> None:
        self.length, self.capacity = 0, capacity
        self.rows = [Buffer((kv_heads, capacity, head_dim)) for _ in range(2 * layers)]
        self.stored = Buffer((1, capacity))
        self.stored.array.fill(HIDE)

    def append(self, fresh: Floats) -> None:
        """Store rows (2 * layers, kv_heads, n, head_dim)."""
        end = self.length + fresh.shape[2]
        for buffer, rows in zip(self.rows, fresh, strict=True):
            buffer.array[:, self.length : end] = rows
        self.stored.array[0, self.length : end] = 0.0
        self.length = end

    def clear(self) -> None:
        """Hold no rows. What lies in the buffers stays, unseen."""
        self.stored.array.fill(HIDE)
        self.length = 0

    def copy_to(self, other: Cache) -> Cache:
        """Store all rows in `other`, which is larger and empty; returns it."""
        for mine, its in zip(self.rows, other.rows, strict=True):
            its.array[:, : self.length] = mine.array[:, : self.length]
        other.stored.array[0, : self.length] = 0.0
        other.length = self.length
        return other


class Transformer:
    """The graph and the small inputs that all caches share. One thread at a time."""

    def __init__(
        self,
        open_graph: Callable[[dict[str, Shape], list[str]], Graph],
        outputs: Mapping[str, tuple[int, ...]],
        meta: dict[str, int],
        width: int,
    ) -> None:
        """open_graph: of its inputs and outputs. outputs: besides the new rows, with their shapes. width: of a row."""
        layers, kv_heads, head_dim = (meta[key] for key in ("layers", "kv_heads", "head_dim"))
        shapes: dict[str, Shape] = {ROWS: (1, None, width), POSITIONS: (None,), STORED: (1, None), CAUSAL: (None, None)}
        shapes |= {past: (kv_heads, None, head_dim) for past, _ in cache_names(layers)}
        self._graph = open_graph(shapes, [*outputs, FRESH])
        self._share, self._width = meta["heads"] // kv_heads, width
        self._sizes = layers, kv_heads, head_dim
        self._inputs: dict[int, tuple[Buffer, Buffer, Buffer]] = {}
        values = self._values(self.cache(1), np.zeros((1, width), np.float32), keep=True)
        self._graph.expect(values, {**outputs, FRESH: (2 * layers, kv_heads, 1, head_dim)})

    def cache(self, capacity: int) -> Cache:
        """An empty one."""
        return Cache(*self._sizes, capacity)

    def run(self, cache: Cache, rows: Floats, *, keep: bool = False) -> list[Any]:
        """Append rows (n, width); the outputs' tensors, valid until the next run. keep: the inputs of this n, for later runs."""
        *outputs, fresh = self._graph.run(self._values(cache, rows, keep))
        new = fresh.read()
        # MNN's exp and max turn what is no number into one, so later results may not show it.
        if not np.isfinite(new).all():
            raise SynthesisError("MNN made keys or values that are not finite; the weights or the precision are unusable.")
        cache.append(new)
        return outputs

    def _values(self, cache: Cache, rows: Floats, keep: bool) -> list[Any]:
        count = len(rows)
        given, positions, causal = self._inputs.get(count) or self._make(count, keep)
        given.array[0] = rows
        positions.array[:] = np.arange(cache.length, cache.length + count)
        return [given.value, positions.value, cache.stored.value, causal.value, *(buffer.value for buffer in cache.rows)]

    def _make(self, count: int, keep: bool) -> tuple[Buffer, Buffer, Buffer]:
        made = Buffer((1, count, self._width)), Buffer((count,), np.int32), Buffer((self._share * count, count))
        above = np.triu(np.full((count, count), HIDE, np.float32), 1)
        made[2].array[:] = np.tile(above, (self._share, 1))
        if keep:
            self._inputs[count] = made
        return made
