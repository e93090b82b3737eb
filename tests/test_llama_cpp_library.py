"""Finding and loading the library: where it may lie, which builds are refused, and that waiting threads sleep."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from ouzel.errors import MissingExtraError, UsageError
from ouzel.runtimes.llama_cpp import RUNTIME
from ouzel.runtimes.llama_cpp import library as module
from ouzel.runtimes.llama_cpp.library import PINNED, VARIABLE, Library, library, locate
from ouzel.runtimes.llama_cpp.structs import ContextParams, ModelParams, layout

INSTALL = r"pip install 'ouzel\[llama-cpp\]'"


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def wheel() -> Path:
    return Path(find_spec("xllamacpp").origin).parent / "xllamacpp.abi3.so"


def python(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src"), **variables}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)


def test_the_pinned_wheel_is_found_and_used() -> None:
    status = RUNTIME.status()
    assert (status.available, status.version, status.devices) == (True, PINNED, ("cpu",))
    assert locate() == (wheel(), f"xllamacpp {PINNED}")
    assert library() is library()


def test_the_runtime_is_known_without_its_library() -> None:
    """Importing it loads nothing native, and nothing of the packages' Python is ever imported."""
    done = python(
        "import sys, ouzel.runtimes.llama_cpp as l\n"
        "maps = open('/proc/self/maps').read() if sys.platform == 'linux' else ''\n"
        "assert 'xllamacpp' not in maps and 'gguf' not in sys.modules\n"
        "assert l.RUNTIME.status().available and 'xllamacpp' not in sys.modules"
    )
    assert done.returncode == 0, done.stderr


def test_a_missing_extra_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACKAGES", {"no_such_package": "."})
    with pytest.raises(MissingExtraError, match=f"not installed; install it with: {INSTALL}"):
        locate()
    monkeypatch.setattr("ouzel.runtimes.llama_cpp.runtime.library", locate)
    assert "not installed" in RUNTIME.status().detail
    assert not RUNTIME.status().available


def test_another_version_of_the_wheel_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.metadata, "version", lambda name: "2026.9.11063")
    monkeypatch.setattr(module, "PACKAGES", {"xllamacpp": "."})
    with pytest.raises(
        UsageError, match=f"xllamacpp 2026.9.11063 is installed, but ouzel is made for {PINNED} exactly: {INSTALL}"
    ):
        locate()


def test_the_variable_names_a_file_or_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for given in (wheel(), wheel().parent):
        monkeypatch.setenv(VARIABLE, str(given))
        assert locate() == (wheel(), VARIABLE)
    for given in (tmp_path, tmp_path / "absent.so"):
        monkeypatch.setenv(VARIABLE, str(given))
        with pytest.raises(UsageError, match=f"{VARIABLE} is .*no library of llama.cpp"):
            locate()


def test_what_is_no_library_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "libllama.so"
    text.write_text("hello")
    with pytest.raises(UsageError, match=f"cannot be loaded .*{INSTALL}"):
        Library(text, "test")


def test_a_library_without_the_functions_is_refused() -> None:
    other = next(Path(line.split()[-1]) for line in Path("/proc/self/maps").read_text().splitlines() if "/libc.so" in line)
    with pytest.raises(UsageError, match=f"lacks .* functions that ouzel needs .*{INSTALL}"):
        Library(other, "test")


def test_a_build_of_another_layout_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more field in front of the booleans, as builds have brought before, shifts the bytes that are compared."""
    lib = library()
    model, context = lib.llama_model_default_params(), lib.llama_context_default_params()
    assert layout(model, context) == "with moe_cache_size"
    without = ContextParams.from_buffer_copy(context)
    without.rest[:-8] = context.rest[8:]
    assert layout(model, without) == "without moe_cache_size"
    longer = ContextParams.from_buffer_copy(context)
    longer.rest[8:] = context.rest[:-8]
    assert layout(model, longer) is None
    for change in ({"n_ctx": 0}, {"type_k": 0}, {"yarn_beta_slow": 1.0}):
        other = ContextParams.from_buffer_copy(context)
        for name, value in change.items():
            setattr(other, name, value)
        assert layout(model, other) is None
    shifted = ModelParams.from_buffer_copy(bytes(8) + bytes(model)[:-8])
    assert layout(shifted, context) is None
    monkeypatch.setattr(module, "layout", lambda *defaults: None)
    with pytest.raises(UsageError, match=f"parameter structures ouzel does not know, so it was not used.*{INSTALL}"):
        Library(wheel(), "test")


def test_room_behind_the_structures_is_never_written() -> None:
    """The library returns fewer bytes than the structures here hold; a function that wrote more would write past them."""
    lib, size = library(), ctypes.sizeof(ContextParams)
    filled = (ctypes.c_uint8 * size)(*([0xA5] * size))
    lib.llama_context_default_params.restype = None
    try:
        lib.llama_context_default_params.argtypes = [ctypes.c_void_p]  # where results this large go: a hidden first argument
        lib.llama_context_default_params(filled)
    finally:
        lib.llama_context_default_params.restype, lib.llama_context_default_params.argtypes = ContextParams, ()
    assert bytes(filled[-64:]) == b"\xa5" * 64
    assert ContextParams.from_buffer(filled).n_ctx == 512


@pytest.mark.parametrize(("given", "policy"), [(None, "PASSIVE"), ("active", "ACTIVE")])
def test_waiting_threads_sleep_unless_told_otherwise(given: str | None, policy: str) -> None:
    variables = {"OMP_DISPLAY_ENV": "true"} | ({"OMP_WAIT_POLICY": given} if given else {})
    done = python(
        "import os; before = dict(os.environ)\n"
        "from ouzel.runtimes.llama_cpp.library import library; library()\n"
        "assert dict(os.environ) == before",
        **variables,
    )
    assert done.returncode == 0, done.stderr
    assert f"OMP_WAIT_POLICY = '{policy}'" in done.stderr
