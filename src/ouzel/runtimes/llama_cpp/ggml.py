"""ggml's tensors, operators and graphs by ctypes: a graph is built once over fixed memory and then only run.

Shapes are numpy's, the last axis contiguous, except in operators, which count axes from that one on. Whoever builds a graph has
checked every shape that comes from a file: ggml ends the process when one does not fit.
"""

from __future__ import annotations

import ctypes as C
import itertools
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
        self.packed = self._packed()
        lib.ggml_backend_cpu_set_abort_callback(self.pointer, self.switch.callback, self.switch.data)

    def _packed(self) -> int | None:
        """The buffer type in which packed weights are laid out for the processor's widest instructions, if there is one."""
        registry = self.lib.ggml_backend_cpu_reg()
        self.device = self.lib.ggml_backend_reg_dev_get(registry, 0)
        found = self.lib.ggml_backend_reg_get_proc_address(registry, b"ggml_backend_dev_get_extra_bufts")
        if not found:
            return None
        types = C.CFUNCTYPE(C.POINTER(C.c_void_p), C.c_void_p)(found)(self.device)
        kinds = itertools.takewhile(bool, (types[i] for i in itertools.count()))
        return next((kind for kind in kinds if self.lib.ggml_backend_buft_name(kind) == b"CPU_REPACK"), None)


class Arena:
    """Tensors with memory of their own: arrays that Python sees too, and the weights of a mapped file."""

    def __init__(self, backend: Backend, tensors: int) -> None:
        """tensors: how many there will be at most."""
        self.backend, lib = backend, backend.lib
        self.context = _context(lib, lib.ggml_tensor_overhead() * tensors)
        self._kept: list[Any] = []
        self._buffers: list[int] = []
        self._contexts = [self.context]
        weakref.finalize(self, _free, lib, self._contexts, self._buffers).atexit = False

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
        """The named tensors of a file, whose names and shapes have been checked.

        A stack of matrices comes as NAME.0, NAME.1, …; matrices that the processor has a faster layout for are copied into it,
        all others stay where they lie in the file.
        """
        base = file.memory()
        self._kept.append(base)
        buffer = self._buffer(base.ctypes.data, base.size)
        placed = {}
        for name in names:
            info = file.tensors[name]
            stacked = len(info.shape) == 3
            count = info.shape[0] if stacked else 1
            for i in range(count):
                start, size, shape = info.start + info.size // count * i, info.size // count, info.shape[-2:]
                tensor = self._repacked(info.kind, shape, base[start : start + size])
                if tensor is None:
                    tensor = self._new(info.kind, shape)
                    self._place(tensor, buffer, base.ctypes.data + start)
                placed[f"{name}.{i}" if stacked else name] = tensor
        return placed

    def _repacked(self, kind: int, shape: Sequence[int], data: NDArray[np.uint8]) -> Tensor | None:
        """A copy in the faster layout, or None where there is none for this type, shape and processor."""
        lib, packed = self.backend.lib, self.backend.packed
        if packed is None or len(shape) != 2 or kind in _TYPES.values():
            return None
        context = _context(lib, 3 * lib.ggml_tensor_overhead())
        rows, columns = shape
        tensor = int(lib.ggml_new_tensor(context, kind, 2, (C.c_int64 * 2)(columns, rows)))
        buffer = lib.ggml_backend_alloc_ctx_tensors_from_buft(context, packed)
        vector = lib.ggml_new_tensor(context, _TYPES[np.dtype(np.float32)], 1, (C.c_int64 * 1)(columns))
        fits = buffer and lib.ggml_backend_dev_supports_op(self.backend.device, lib.ggml_mul_mat(context, tensor, vector))
        if not fits:
            _free(lib, [context], [buffer] if buffer else [])
            return None
        self._contexts.append(context)
        self._buffers.append(int(buffer))
        lib.ggml_backend_tensor_set(tensor, data.ctypes.data, 0, data.size)
        return tensor

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


def _free(lib: Library, contexts: list[int], buffers: list[int]) -> None:
    for buffer in buffers:
        lib.ggml_backend_buffer_free(buffer)
    for context in contexts:
        lib.ggml_free(context)


def _drop(lib: Library, context: int, allocator: int) -> None:
    lib.ggml_gallocr_free(allocator)
    lib.ggml_free(context)
