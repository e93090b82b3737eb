"""What a conversion makes artifacts for: runtimes, each with the weights of its stages, checked against what it offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ouzel.errors import UsageError, choose
from ouzel.runtimes.base import STAGES, LoweringRuntime, Runtime
from ouzel.runtimes.registry import get_runtime, runtimes

DEFAULT = "onnxruntime"

Weights = str | Mapping[str, str] | None
"""A name that every chosen runtime knows, {runtime: name}, or None; a runtime that is left out takes its own default."""


@dataclass(frozen=True, slots=True)
class Target:
    """One runtime of a conversion. weights: of talker and predictor, decoder: of the decoder; "" for what it does not offer.

    backend: what it lowers its programs for, if that was asked for.
    """

    runtime: Runtime
    weights: str
    decoder: str
    backend: str = ""

    @property
    def artifacts(self) -> dict[str, str]:
        """Stage -> weights, of each stage that the runtime offers."""
        return {stage: self.decoder if stage == "decoder" else self.weights for stage in self.runtime.offer.stages}

    @property
    def label(self) -> str:
        """Its part of a bundle's name: "int4", "int4-vulkan", "int4-decoder-fp16" where the decoder's weights are unusual."""
        unusual = self.decoder not in ("", *self.runtime.offer.stages.get("decoder", ())[:1])
        stored = f"{self.weights}-decoder-{self.decoder}" if self.weights and unusual else self.weights or self.decoder
        return f"{stored}-{self.backend}" if self.backend else stored


def targets(
    runtime: str | Sequence[str] = DEFAULT, weights: Weights = None, decoder: Weights = None, backend: str | None = None
) -> tuple[Target, ...]:
    """runtime: names, as a sequence or separated by commas; weights and decoder may be "NAME" or "RUNTIME=NAME,…" too.

    backend: what the runtimes that lower their programs (`LoweringRuntime`) lower them for. UsageError names the valid choices of
    the runtime that does not know one, and the runtimes that have backends when none of them was asked for.
    """
    names = _names(runtime)
    by_weights, by_decoder = (_by_runtime(given, names, kind) for given, kind in ((weights, "weights"), (decoder, "decoder")))
    found = []
    for name in names:
        one = get_runtime(name)
        talker = _chosen(one, "talker", by_weights.get(name), f"weights of {name}")
        stored = _chosen(one, "decoder", by_decoder.get(name), f"decoder weights of {name}")
        if backend and isinstance(one, LoweringRuntime):
            found.append(Target(one.lowering_for(backend), talker, stored, backend))
        else:
            found.append(Target(one, talker, stored))
    if backend and not any(target.backend for target in found):
        having = [name for name in runtimes() if isinstance(get_runtime(name), LoweringRuntime)]
        raise UsageError(f"{', '.join(names)} has no backends to choose from; --backend is for --runtime {' or '.join(having)}.")
    return tuple(found)


def check_complete(found: Sequence[Target]) -> None:
    """UsageError unless the targets together can speak."""
    missing = [stage for stage in STAGES if not any(stage in target.runtime.offer.stages for target in found)]
    if missing:
        names = ",".join(target.runtime.name for target in found)
        helpers = [n for n in runtimes() if set(missing) <= set(get_runtime(n).offer.stages)]
        raise UsageError(
            f"{names} offers no {' and no '.join(missing)}; convert for a further runtime that does ({', '.join(helpers)}): "
            f"--runtime {DEFAULT},{names}."
        )


def _names(runtime: str | Sequence[str]) -> list[str]:
    names = [part.strip() for part in runtime.split(",")] if isinstance(runtime, str) else list(runtime)
    if not names:
        raise choose("runtime", "", runtimes())
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"Runtime {name!r} is named twice; name each runtime once.")
    return names


def _by_runtime(given: Weights, names: Sequence[str], kind: str) -> Mapping[str, str]:
    if given is None:
        return {}
    if isinstance(given, str):
        if "=" not in given:
            return {name: given for name in names}
        given = dict(_pair(item, kind) for item in given.split(","))
    for name in given:
        if name not in names:
            raise choose(f"runtime in the {kind}", name, names)
    return given


def _pair(item: str, kind: str) -> tuple[str, str]:
    name, equals, value = (part.strip() for part in item.partition("="))
    if not equals or not value:
        raise UsageError(f"{item!r} is no choice of {kind}; write NAME for all runtimes, or RUNTIME=NAME,RUNTIME=NAME.")
    return name, value


def _chosen(runtime: Runtime, stage: str, wanted: str | None, kind: str) -> str:
    offered = runtime.offer.stages.get(stage, ())
    if wanted is None or not offered:
        return offered[0] if offered else ""
    if wanted not in offered:
        raise choose(kind, wanted, offered)
    return wanted
