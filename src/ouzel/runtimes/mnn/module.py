"""MNN modules over memory that is shared: what is written to a buffer's array is what the next run reads."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import BundleError, SynthesisError, UsageError, choose
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.mnn.library import captured, library, version

DEVICES = ("cpu", "opencl", "vulkan", "metal", "cuda")
"""MNN's backends. Its packages bring the CPU; what others a build has shows when one is asked for."""
LOW = "low"
"""The precision with half floats where the hardware has them, and a predictor whose weights stay packed."""
MAX_THREADS = 64  # MNN keeps all of them busy; more is a slip
_EXACT, _HALF = 1, 2  # MNN's precisions
_KEEP_SMALL = 2  # MNN's memory mode in which quantised weights stay so, instead of being expanded at load
_MISSING_BACKEND = "Can't Find type"
_TYPES: dict[Any, Any] = {np.float32: ctypes.c_float, np.int32: ctypes.c_int32}

Shape = tuple[int | None, ...]
"""Of a graph's input; None where any length will do."""


class Buffer:
    """A tensor of MNN's, float32 or int32, zeroed, and `array`, a view of its memory. `value` is what a graph is run with."""

    def __init__(self, shape: Sequence[int], dtype: type[np.float32] | type[np.int32] = np.float32) -> None:
        expressions = library("MNN.expr")
        kind = expressions.float if dtype is np.float32 else expressions.int
        self.value = expressions.placeholder(list(shape), expressions.NCHW, kind)
        self.value.write(np.zeros(shape, dtype))
        self.array: NDArray[Any] = shared(self.value.ptr, shape, dtype)


def shared(capsule: Any, shape: Sequence[int], dtype: type[np.float32] | type[np.int32] = np.float32) -> NDArray[Any]:
    """The host memory that a capsule of MNN's points to, as an array; it must not outlive the tensor."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    memory = (_TYPES[dtype] * math.prod(shape)).from_address(pointer(capsule, None))
    return np.frombuffer(memory, dtype).reshape(tuple(shape))


class Graph:
    """A module loaded from a file. One thread at a time; Python's lock is held while it runs."""

    def __init__(
        self, path: Path, inputs: Mapping[str, Shape], outputs: Sequence[str], options: StageOptions, *, small: bool
    ) -> None:
        """inputs, outputs: the names that the file must have, in the order of `run`. small: its weights are and stay quantised.

        BundleError when the file cannot be loaded or is of another network, UsageError when MNN has no such device.
        """
        modules = library("MNN.nn")
        self._threads = thread_count(options.threads)
        _check_pool(self._threads)
        settings = {
            "backend": options.device.upper(),
            "precision": _HALF if options.precision == LOW else _EXACT,
            "memory": _KEEP_SMALL if small else 0,
            "power": 0,
            "numThread": self._threads,
        }
        self._path, self._outputs = path, len(outputs)
        with captured() as lines:
            self._manager = modules.create_runtime_manager((settings,))
            self._module = self._load(modules, inputs, outputs)
            # By the file's own names, to say what it lacks: MNN stops at the first output that is not there.
            module = self._module or self._load(modules, [], [])
        if any(_MISSING_BACKEND in line for line in lines):
            raise UsageError(f"The installed MNN {version()} has no {options.device!r} here; choose the device cpu.")
        if module is not None:
            info = module.get_info()
            found = dict(zip(info["inputNames"], (tuple(value.shape) for value in info["inputs"]), strict=True))
            check_tensors(path, inputs, outputs, found, info["outputNames"])
        if self._module is None:
            raise BundleError(f"MNN {version()} cannot load {path}: {last(lines)} Convert the bundle again.")
        _loaded.add(self)

    @property
    def threads(self) -> int:
        """The number that it was loaded with."""
        return self._threads

    def _load(self, modules: Any, inputs: Iterable[str], outputs: Sequence[str]) -> Any:
        try:
            return modules.load_module_from_file(
                str(self._path), list(inputs), list(outputs), runtime_manager=self._manager, dynamic=False, shape_mutable=True
            )
        except Exception:  # MNN raises plain ones, and SystemError
            return None

    def expect(self, inputs: Sequence[Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
        """Run once. BundleError when one of the outputs, given by name in their order, has another shape."""
        for (name, wanted), value in zip(shapes.items(), self.run(inputs), strict=True):
            if tuple(value.shape) != wanted:
                raise BundleError(
                    f"{self._path} is of another model: its {name} has the shape {tuple(value.shape)}, not {wanted}."
                )

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs' tensors; `read()` views their memory, which the next run overwrites. SynthesisError when MNN fails."""
        try:
            outputs: list[Any] = self._module.onForward(list(inputs))
        except Exception as error:
            raise SynthesisError(f"MNN failed to run {self._path.name}: {error}") from error
        if not outputs or len(outputs) != self._outputs:
            raise SynthesisError(
                f"MNN failed to run {self._path.name}; its weights or the memory of this machine may be at fault."
            )
        return outputs


def check_tensors(
    path: Path, inputs: Mapping[str, Shape], outputs: Sequence[str], found: Mapping[str, Sequence[int]], results: Sequence[str]
) -> None:
    """BundleError that names what of the expected inputs and outputs the file `path` lacks, or has of another shape.

    found: shapes of the inputs, a length of -1 or less for what is open. A wrong shape would end the process inside MNN.
    """
    absent = [name for name in inputs if name not in found] + [name for name in outputs if name not in results]
    if absent:
        raise BundleError(f"{path} is not the network that the bundle says it is: it has no {', '.join(absent)}.")
    for name, wanted in inputs.items():
        shape = found[name]
        if len(shape) != len(wanted) or any(a is not None and b > 0 and a != b for a, b in zip(wanted, shape, strict=True)):
            told = ", ".join("any" if n is None else str(n) for n in wanted)
            raise BundleError(f"{path} is of another model: its {name} has the shape {tuple(shape)}, not ({told}).")


def last(lines: Sequence[str]) -> str:
    """The last line of what MNN printed, as a sentence."""
    text = next((line.strip() for line in reversed(lines) if line.strip()), "it gave no reason")
    return text if text.endswith(".") else f"{text}."


def thread_count(threads: int) -> int:
    """The number to give to MNN. threads: 0 = one: MNN's threads spin while a graph runs, which a busy machine punishes."""
    if not 0 <= threads <= MAX_THREADS:
        raise choose("number of threads", threads, (f"0 (automatic) to {MAX_THREADS}",))
    return threads or 1


def _check_pool(threads: int) -> None:
    """UsageError when modules of another number are loaded.

    All of a process share one pool, which takes on the last one's number, while the buffers of the others are made for theirs.
    """
    others = {graph.threads for graph in _loaded} - {threads}
    if others:
        raise UsageError(
            f"MNN computes talkers and code predictors of a process with one number of threads, {others.pop()} at present, "
            f"not {threads} too; give both stages the same."
        )


_loaded: WeakSet[Graph] = WeakSet()
