"""One .pte file: opened, compared with what the manifest says of it, and run, with errors as sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ouzel.errors import BundleError, SynthesisError
from ouzel.runtimes.executorch.library import POOL, executorch, quietly

_MAGIC = slice(4, 8), b"ET12"  # where a program's flatbuffer names its format
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Method:
    """What a method takes, name -> largest shape, in the order of its arguments, and how many tensors it gives."""

    inputs: Mapping[str, Shape]
    outputs: int


class Program:
    """A loaded program, its weights packed once for each of its methods. One thread at a time."""

    def __init__(self, path: Path, methods: Mapping[str, Method], *, backend: str, threads: int) -> None:
        """backend: name of the delegate it was lowered for. BundleError when the file is not what `methods` says."""
        library = executorch()
        if backend not in library.backends:
            raise BundleError(
                f"{path.name} was lowered for {backend}, which ExecuTorch {library.version} here does not have "
                f"(it has {', '.join(library.backends)}); take it to a device that does, or convert for another backend."
            )
        _check_magic(path)
        POOL.join(self, threads)
        native = library.native
        check = native.Verification.InternalConsistency
        self._path = path
        self._program = self._loaded(lambda: native._load_program(str(path), program_verification=check))
        found = {self._program.get_method_name(i) for i in range(self._program.num_methods())}
        if missing := [name for name in methods if name not in found]:
            raise BundleError(
                f"{path} lacks {', '.join(missing)} (it has {', '.join(sorted(found))}): it is of another stage or version; "
                "convert the bundle again."
            )
        for name, wanted in methods.items():
            self._compare(name, wanted)
        self._methods = {name: self._loaded(lambda name=name: self._program.load_method(name)) for name in methods}

    def run(self, method: str, inputs: Sequence[Any]) -> list[Any]:
        """The tensors that `method` gives, fresh ones. inputs: contiguous, no larger than the method's; not checked here."""
        try:
            result: list[Any] = self._methods[method](inputs)
        except RuntimeError as error:
            raise SynthesisError(f"ExecuTorch failed in {method} of {self._path.name}: {error}.") from error
        return result

    def _loaded(self, action: Any) -> Any:
        result, reason = quietly(action)
        if result is None:
            raise BundleError(
                f"ExecuTorch {executorch().version} cannot load {self._path}: {reason}. Convert the bundle again or upgrade."
            )
        return result

    def _compare(self, name: str, wanted: Method) -> None:
        meta = self._program.method_meta(name)
        count, outputs = meta.num_inputs(), meta.num_outputs()
        found = [tuple(meta.input_tensor_meta(i).sizes()) for i in range(count)]
        names, shapes = list(wanted.inputs), list(wanted.inputs.values())
        other = next((i for i, shape in enumerate(shapes) if i >= count or found[i] != shape), None)
        if other is not None:
            has = found[other] if other < count else "absent"
            raise BundleError(
                f"{self._path}: {names[other]} of {name} is {has}, but the manifest says {shapes[other]}: "
                "it is of another model; convert the bundle again."
            )
        if count > len(shapes) or outputs != wanted.outputs:
            raise BundleError(
                f"{self._path}: {name} takes {count} tensors and gives {outputs}, but the manifest says {len(shapes)} and "
                f"{wanted.outputs}: it is of another model; convert the bundle again."
            )


def _check_magic(path: Path) -> None:
    """The native loader ends the process over a file that is no program at all."""
    try:
        with path.open("rb") as file:
            start = file.read(_MAGIC[0].stop)
    except OSError as error:
        raise BundleError(f"{path} cannot be read ({error.strerror}); convert or download the bundle again.") from None
    if start[_MAGIC[0]] != _MAGIC[1]:
        raise BundleError(f"{path} is not an ExecuTorch program; convert or download the bundle again.")
