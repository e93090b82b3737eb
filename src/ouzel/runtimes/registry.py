"""Runtimes by name: built in, from entry points `ouzel.runtimes`, or registered at run time."""

from __future__ import annotations

from ouzel.errors import ConfigError, MissingExtraError
from ouzel.plugins import Registry
from ouzel.runtimes.base import Runtime, RuntimeStatus


def _check(runtime: Runtime) -> None:
    if not isinstance(runtime, Runtime):
        raise ConfigError(f"The runtime object {runtime!r} does not offer what ouzel.runtimes.base.Runtime asks for.")


# Found without installed entry points too (a source tree on PYTHONPATH, a frozen application).
_RUNTIMES: Registry[Runtime] = Registry(
    "runtime",
    {
        "executorch": "ouzel.runtimes.executorch:RUNTIME",
        "llama_cpp": "ouzel.runtimes.llama_cpp:RUNTIME",
        "mnn": "ouzel.runtimes.mnn:RUNTIME",
        "onnxruntime": "ouzel.runtimes.onnxruntime:RUNTIME",
        "openvino": "ouzel.runtimes.openvino:RUNTIME",
    },
    group="ouzel.runtimes",
    check=_check,
)


def runtimes() -> tuple[str, ...]:
    """Names of all known runtimes, sorted; imports none of them."""
    return _RUNTIMES.names()


def get_runtime(name: str) -> Runtime:
    """The runtime called `name`. Raises UsageError for an unknown name, ConfigError for a broken plug-in."""
    return _RUNTIMES.get(name)


def active_runtime(name: str) -> Runtime:
    """`get_runtime`, for use here: MissingExtraError says why it cannot be used, and what installs it."""
    runtime = get_runtime(name)
    state = runtime.status()
    if not state.available:
        raise MissingExtraError(f"Runtime {name} cannot be used here: {why_not(runtime, state).rstrip('.')}.")
    return runtime


def why_not(runtime: Runtime, state: RuntimeStatus) -> str:
    """What a status that is not available says, with the pip command if it does not name one."""
    extra = runtime.offer.extra
    install = f"pip install 'ouzel[{extra}]'" if extra else f"pip install {runtime.name}"
    if "pip install" in state.detail:
        return state.detail
    return f"{state.detail.rstrip('.')}; {install}" if state.detail else install


def register_runtime(runtime: Runtime, *, name: str | None = None) -> None:
    """Make `runtime` known under its name (or `name`); replacing one logs a warning."""
    _RUNTIMES.register(name or runtime.name, runtime)


def unregister_runtime(name: str) -> None:
    """Undo `register_runtime`."""
    _RUNTIMES.unregister(name)
