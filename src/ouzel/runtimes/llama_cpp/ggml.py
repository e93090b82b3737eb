"""ggml's tensors, operators and graphs by ctypes: a graph is built once over fixed memory and then only run.

Shapes are numpy's, the last axis contiguous, except in operators, which count axes from that one on. Whoever builds a graph has
checked every shape that comes from a file: ggml ends the process when one does not fit.
"""

from __future__ import annotations

import ctypes as C
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import SynthesisError
from ouzel.runtimes.llama_cpp.gguf_file import GgufFile
from ouzel.runtimes.llama_cpp.library import Library
from ouzel.runtimes.llama_cpp.structs import InitParams
from ouzel.runtimes.llama_cpp.switch import Switch

Tensor = int  # the address of a ggml_tensor
_CACHE_LINE = 64
_TYPES = {np.dtype(np.float32): 0, np.dtype(np.int32): 26}  # enum ggml_type
_DONE, _ABORTED = 0, 1  # enum ggml_status; ABORTED is what an abort callback causes


class Backend:
    """A CPU backend with its own number of threads. One graph of it runs at a time."""

    def __init__(self, lib: Library, threads: int) -> None:
        self.lib, self.switch = lib, Switch()
        self.pointer = lib.ggml_backend_cpu_init()
        if not self.pointer:
            raise SynthesisError(f"llama.cpp could not start its CPU backend: {lib.why()}.")
        weakref.finalize(self, lib.ggml_backend_free, self.pointer).atexit = False
        lib.ggml_backend_cpu_set_n_threads(self.pointer, threads)
        lib.ggml_backend_cpu_set_abort_callback(self.pointer, self.switch.callback, self.switch.data)


class Arena:
    """Tensors with memory of their own: arrays that Python sees too, and the weights of a mapped file."""

    def __init__(self, backend: Backend, tensors: int) -> None:
        """tensors: how many there will be at most."""
        self.backend, lib = backend, backend.lib
        size = lib.ggml_tensor_overhead() * tensors
        self.context = _context(lib, size)
        self._kept: list[Any] = []
        self._buffers: list[int] = []
        weakref.finalize(self, _free, lib, self.context, self._buffers).atexit = False

    def array(
        self, shape: Sequence[int], dtype: Any = np.float32, *, seeming: Sequence[int] | None = None
    ) -> tuple[Tensor, NDArray[Any]]:
        """A zeroed tensor (float32 or int32) and the array over its memory.

        seeming: a larger shape for the tensor, which gets the address space for it: ggml counts the bytes of views whose rows
        overlap as if they did not. Pages that nobody touches are never resident.
        """
        kind, outer = np.dtype(dtype), seeming or shape
        size = int(np.prod(outer)) * kind.itemsize
        memory = np.zeros(size + 2 * _CACHE_LINE, np.uint8)
        start = -memory.ctypes.data % _CACHE_LINE
        array = memory[start : start + size].view(kind)[: int(np.prod(shape))].reshape(tuple(shape))
        tensor = self._new(_TYPES[kind], outer)
        self._place(tensor, self._buffer(array.ctypes.data, size), array.ctypes.data)
        self._kept.append(memory)
        return tensor, array

    def weights(self, file: GgufFile, names: Sequence[str]) -> dict[str, Tensor]:
        """The named tensors of a file where they lie, nothing copied. The names have been checked."""
        base = file.memory()
        self._kept.append(base)
        buffer = self._buffer(base.ctypes.data, base.size)
        placed = {}
        for name in names:
            info = file.tensors[name]
            placed[name] = self._new(info.kind, info.shape)
            self._place(placed[name], buffer, base.ctypes.data + info.start)
        return placed

    def _new(self, kind: int, shape: Sequence[int]) -> Tensor:
        axes = (C.c_int64 * len(shape))(*reversed(shape))
        return int(self.backend.lib.ggml_new_tensor(self.context, kind, len(shape), axes))

    def _buffer(self, start: int, size: int) -> int:
        buffer = int(self.backend.lib.ggml_backend_cpu_buffer_from_ptr(start, size))
        self._buffers.append(buffer)
        return buffer

    def _place(self, tensor: Tensor, buffer: int, address: int) -> None:
        self.backend.lib.ggml_backend_tensor_alloc(buffer, tensor, address)


class Graph:
    """Operators over an arena's tensors; build by calling them, `store` results into arrays, then `finish` and `run`."""

    def __init__(self, arena: Arena, nodes: int) -> None:
        """nodes: how many operators and views there will be at most."""
        self._arena, lib = arena, arena.backend.lib
        self._lib = lib
        size = lib.ggml_tensor_overhead() * nodes + lib.ggml_graph_overhead_custom(nodes, False)
        self._context = _context(lib, size)
        self._graph = lib.ggml_new_graph_custom(self._context, nodes, False)
        self._allocator = lib.ggml_gallocr_new(lib.ggml_backend_cpu_buffer_type())
        weakref.finalize(self, _drop, lib, self._context, self._allocator).atexit = False

    def __getattr__(self, operator: str) -> Any:
        """ggml's operator of that name with the context filled in: `graph.mul_mat(weight, x)`."""
        if operator.startswith("_"):
            raise AttributeError(operator)
        function, context = getattr(self._lib, f"ggml_{operator}"), self._context
        return lambda *operands: function(context, *operands)

    def normed(self, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        """x / rms(x) * weight over the last axis."""
        return int(self.mul(self.rms_norm(x, epsilon), weight))

    def store(self, value: Tensor, place: Tensor) -> None:
        """Write `value` to `place` (a tensor of an arena or a view of one) at this point of the graph."""
        self._lib.ggml_build_forward_expand(self._graph, self.cpy(value, place))

    def finish(self) -> None:
        """Reserve what the operators need in between."""
        if not self._lib.ggml_gallocr_alloc_graph(self._allocator, self._graph):
            raise SynthesisError(f"llama.cpp found no memory for a graph: {self._lib.why()}.")

    def run(self) -> None:
        """Compute. SynthesisError when it fails or was interrupted."""
        status = self._lib.ggml_backend_graph_compute(self._arena.backend.pointer, self._graph)
        if status == _ABORTED:
            raise SynthesisError("The computation was interrupted.")
        if status != _DONE:
            raise SynthesisError(f"llama.cpp failed to compute (status {status}): {self._lib.why()}.")


def _context(lib: Library, size: int) -> int:
    pointer = lib.ggml_init(InitParams(mem_size=size, mem_buffer=None, no_alloc=True))
    if not pointer:
        raise SynthesisError(f"llama.cpp found no memory for {size} bytes of tensor headers: {lib.why()}.")
    return int(pointer)


def _free(lib: Library, context: int, buffers: list[int]) -> None:
    for buffer in buffers:
        lib.ggml_backend_buffer_free(buffer)
    lib.ggml_free(context)


def _drop(lib: Library, context: int, allocator: int) -> None:
    lib.ggml_gallocr_free(allocator)
    lib.ggml_free(context)
