"""Finding and loading the shared library of llama.cpp: the pinned wheel, another installed one, or the one that a variable names.

Nothing is compiled and no Python of those packages is imported. The library is loaded once a process, with passive waits, and
only after the defaults that it returns have shown that its structures are those this version of ouzel knows (`structs`).
"""

from __future__ import annotations

import ctypes as C
import functools
import importlib.util
import os
from collections import deque
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from ouzel.errors import MissingExtraError, UsageError
from ouzel.runtimes.llama_cpp.prototypes import NEEDED, declare
from ouzel.runtimes.llama_cpp.structs import layout

VARIABLE = "OUZEL_LLAMA_CPP_LIB"
PINNED = "2026.10.11549"
INSTALL = "pip install 'ouzel[llama-cpp]'"
# package -> where in it the library lies; each exports what is needed, the first is the one that ouzel is tested with.
PACKAGES = {"xllamacpp": ".", "llama_cpp_py_sync": ".", "llama_cpp": "lib"}
_MAIN = ("xllamacpp.abi3.so", "xllamacpp.pyd", "libllama.so", "libllama.so.0", "libllama.dylib", "llama.dll")
_BESIDE = ("ggml-base", "ggml-cpu", "ggml")  # separate builds keep these apart; loaded first, in this order
_KEPT: list[Any] = []
_TOLD = (3, 4)  # warnings and errors of enum ggml_log_level


class Library:
    """The functions of one loaded build; attributes are looked up in its files. `messages`: its last warnings and errors."""

    def __init__(self, path: Path, origin: str) -> None:
        """path: the main file. UsageError when it cannot be loaded, lacks functions or is of an unknown build."""
        self.path, self.origin = path, origin
        self.messages: deque[str] = deque(maxlen=6)
        try:
            self._files = _open(path)
        except OSError as error:
            raise UsageError(f"The llama.cpp library {path} cannot be loaded ({error}); {INSTALL} brings one that can.") from None
        missing = [name for name in NEEDED if self._find(name) is None]
        if missing:
            raise UsageError(
                f"{path} lacks {len(missing)} functions that ouzel needs ({', '.join(missing[:4])}…): it is not llama.cpp or an "
                f"older one; install the tested build with: {INSTALL}."
            )
        declare(self)
        log = C.CFUNCTYPE(None, C.c_int, C.c_char_p, C.c_void_p)(self._note)
        _KEPT.append(log)  # the native library calls it for as long as the process lives, whatever becomes of this object
        self.llama_log_set(log, None)
        found = layout(self.llama_model_default_params(), self.llama_context_default_params())
        if found is None:
            raise UsageError(
                f"{path} is a build of llama.cpp whose parameter structures ouzel does not know, so it was not used; "
                f"install the tested build with: {INSTALL}."
            )
        self.llama_backend_init()

    def __getattr__(self, name: str) -> Any:
        function = None if name.startswith("_") else self._find(name)
        if function is None:
            raise AttributeError(name)
        setattr(self, name, function)
        return function

    def _find(self, name: str) -> Any:
        for file in self._files:
            try:
                return getattr(file, name)
            except AttributeError:
                continue
        return None

    def _note(self, level: int, text: bytes | None, _: object) -> None:
        if text and level in _TOLD:
            self.messages.append(text.decode("utf-8", "replace").strip())

    def why(self) -> str:
        """What the library said last, in one line, for an error of ours; forgets it."""
        said = "; ".join(line for line in self.messages if line) or "it gave no reason"
        self.messages.clear()
        return said


@functools.cache
def library() -> Library:
    """The one library of this process. MissingExtraError when none is installed, UsageError for one that cannot be used."""
    path, origin = locate()
    return Library(path, origin)


def locate() -> tuple[Path, str]:
    """The file that `library` loads and where it comes from, without loading it. Raises what `library` raises for a bad place."""
    given = os.environ.get(VARIABLE)
    if given:
        place = Path(os.path.expanduser(given))
        main = next(_mains(place), None) if place.is_dir() else place
        if main is None or not main.is_file():
            raise UsageError(f"{VARIABLE} is {given}, which is no library of llama.cpp and no folder that holds one.")
        return main, VARIABLE
    refused = None
    for package, folder in PACKAGES.items():
        for root in _places(package):
            main = next(_mains(root / folder), None)
            if main is None:
                continue
            version = _version(package)
            if package == "xllamacpp" and version != PINNED:
                refused = f"xllamacpp {version} is installed, but ouzel is made for {PINNED} exactly: {INSTALL}."
                continue
            return main, f"{package} {version}"
    if refused is not None:
        raise UsageError(refused)
    raise MissingExtraError(f"llama.cpp is not installed; install it with: {INSTALL}.")


def _places(package: str) -> list[Path]:
    spec = importlib.util.find_spec(package)
    return [Path(place) for place in (spec.submodule_search_locations or ())] if spec is not None else []


def _mains(folder: Path) -> Iterator[Path]:
    return (folder / name for name in _MAIN if (folder / name).is_file())


def _version(package: str) -> str:
    try:
        return metadata.version(package.replace("_", "-") if package != "llama_cpp" else "llama-cpp-python")
    except metadata.PackageNotFoundError:
        return "of unknown version"


def _open(path: Path) -> list[C.CDLL]:
    """The library and what lies beside it, the main file first. Waiting threads sleep: spinning ones starve a shared machine."""
    before = os.environ.get("OMP_WAIT_POLICY")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read by OpenMP when it is loaded, which is now
    try:
        beside = [
            C.CDLL(str(file), mode=C.RTLD_GLOBAL)
            for name in _BESIDE
            for file in sorted(path.parent.glob(f"*{name}.*"))[:1]
            if file != path
        ]
        return [C.CDLL(str(path)), *beside]
    finally:
        if before is None:
            del os.environ["OMP_WAIT_POLICY"]
