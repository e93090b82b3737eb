"""One way to open and run an ONNX Runtime session: passive waits, one operator at a time, errors as sentences.

A session may be used by one thread at a time; different sessions may run on different threads at once.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import BundleError, MissingExtraError, SynthesisError, UsageError

MAX_THREADS = 1024  # more is a slip; a million of them take the whole machine down
_CACHE_LINE = 64  # bytes
_ERRORS_ONLY = 3  # ONNX Runtime's severity scale: 0 verbose .. 4 fatal


def onnxruntime() -> Any:
    """The onnxruntime module, imported at first use; MissingExtraError when it is not installed."""
    try:
        import onnxruntime as module
    except ImportError as error:
        raise MissingExtraError(
            f"ONNX Runtime cannot be imported ({error}); install it with: pip install onnxruntime."
        ) from error
    return module


def session_options(threads: int = 0) -> Any:
    """SessionOptions of every ouzel session. threads: 0 lets ONNX Runtime take one per physical core."""
    if threads < 0:
        raise UsageError(f"The number of threads must be 0 (automatic) or more, not {threads}.")
    if threads > MAX_THREADS:
        raise UsageError(f"The number of threads must be at most {MAX_THREADS}, not {threads}.")
    ort = onnxruntime()
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = _ERRORS_ONLY
    # Spinning threads starve the other stage, and everything else, on a small shared machine.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    # Weights outside the arena: it grows by doubling and would keep up to twice their size.
    options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")
    return options


def open_session(path: str | os.PathLike[str], *, threads: int = 0, options: Any = None) -> Any:
    """Load `path` for the CPU. BundleError if it is absent or cannot be loaded by this ONNX Runtime."""
    ort = onnxruntime()
    path = Path(path)
    if not path.is_file():
        raise BundleError(f"The model file {path} does not exist; convert or download the bundle again.")
    options = options or session_options(threads)

    def opened(model: Path) -> Any:
        return ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])

    try:
        try:
            return opened(path)
        except Exception:  # of whatever class, as below
            # Weights inside an If are refused in files with a second name, as uv and `convert --add` make them.
            if not _has_other_names(path.with_suffix(".data")):
                raise
            with TemporaryDirectory(prefix="ouzel-", ignore_cleanup_errors=True) as folder:
                for file in (path, path.with_suffix(".data")):
                    shutil.copyfile(file, Path(folder, file.name))
                return opened(Path(folder, path.name))
    except Exception as error:  # ONNX Runtime's exception classes differ between versions
        raise BundleError(
            f"ONNX Runtime {ort.__version__} cannot load {path}: {_first_line(error)} "
            "Convert the bundle again or upgrade onnxruntime."
        ) from error


def _has_other_names(file: Path) -> bool:
    return file.is_file() and (file.is_symlink() or file.stat().st_nlink > 1)


def run(session: Any, inputs: Mapping[str, NDArray[Any]], outputs: Sequence[str] | None = None) -> list[NDArray[Any]]:
    """session.run by names (all outputs when None), its failures as SynthesisError."""
    try:
        result: list[NDArray[Any]] = session.run(None if outputs is None else list(outputs), dict(inputs))
    except Exception as error:
        raise SynthesisError(f"ONNX Runtime failed: {_first_line(error)}") from error
    return result


def run_bound(session: Any, binding: Any) -> None:
    """session.run_with_iobinding, its failures as SynthesisError."""
    try:
        session.run_with_iobinding(binding)
    except Exception as error:
        raise SynthesisError(f"ONNX Runtime failed: {_first_line(error)}") from error


def bind(session: Any, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    """An IOBinding of OrtValues by name; BundleError when the graph has no such input or output, so is of another version."""
    binding = session.io_binding()
    try:
        for name, value in inputs.items():
            binding.bind_ortvalue_input(name, value)
        for name, value in outputs.items():
            binding.bind_ortvalue_output(name, value)
    except Exception as error:
        raise BundleError(
            f"A graph of this bundle is not what this version of ouzel expects ({_first_line(error)}) Convert the bundle again."
        ) from error
    return binding


def buffer(array: NDArray[Any]) -> Any:
    """An OrtValue that shares the memory of a C-contiguous array: writes to the array are what the next run reads."""
    value = onnxruntime().OrtValue.ortvalue_from_numpy(array)
    if array.size and value.data_ptr() != array.ctypes.data:
        raise SynthesisError("ONNX Runtime copied a buffer that has to be shared; this version cannot be used.")
    return value


def zeros(shape: Sequence[int], dtype: Any = np.float32) -> tuple[NDArray[Any], Any]:
    """A zeroed array on a cache line boundary and the OrtValue over its memory; keep both alive together."""
    count = math.prod(shape) * np.dtype(dtype).itemsize
    try:
        memory = np.zeros(count + _CACHE_LINE, np.uint8)  # pages that are never written are never resident
    except (MemoryError, ValueError):
        raise BundleError(
            f"A buffer of {count:,} bytes cannot be had, which the bundle asks for; it is damaged or too large for this machine."
        ) from None
    start = -memory.ctypes.data % _CACHE_LINE
    array = memory[start : start + count].view(dtype).reshape(tuple(shape))
    return array, buffer(array)


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    line = text[0] if text else type(error).__name__
    return line if line.endswith(".") else f"{line}."
