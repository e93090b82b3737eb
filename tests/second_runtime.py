"""A second runtime for tests of placement: ONNX Runtime's real stages under another name, which can be switched off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from ouzel.errors import SynthesisError
from ouzel.runtimes.base import Offer, RuntimeStatus
from ouzel.runtimes.onnxruntime import RUNTIME
from ouzel.runtimes.registry import register_runtime, unregister_runtime

NAME = "second"


class Renamed:
    """A bundle writer for which the folder and the runtime `onnxruntime` have another name."""

    def __init__(self, writer) -> None:
        self._writer = writer

    def path(self, rel):
        return self._writer.path(rel.replace("onnxruntime/", f"{NAME}/"))

    def add_artifact(self, stage, runtime, weights, files, meta):
        self._writer.add_artifact(stage, NAME, weights, [f.replace("onnxruntime/", f"{NAME}/") for f in files], meta)


class SecondRuntime:
    """available: whether it can be used. breaks: the stage whose loading fails."""

    name = NAME
    offer = Offer({"talker": ("fp32", "int8"), "predictor": ("fp32", "int8"), "decoder": ("fp32",)}, extra="second-hand")

    def __init__(self) -> None:
        self.available = True
        self.breaks = ""

    def status(self) -> RuntimeStatus:
        return replace(RUNTIME.status(), available=self.available, detail="" if self.available else "its library is missing")

    def load_talker(self, bundle, artifact, options):
        return self._load("talker", bundle, artifact, options)

    def load_predictor(self, bundle, artifact, options):
        return self._load("predictor", bundle, artifact, options)

    def load_decoder(self, bundle, artifact, options):
        return self._load("decoder", bundle, artifact, options)

    def _load(self, stage, bundle, artifact, options):
        if self.breaks == stage:
            raise SynthesisError(f"The {stage} of {NAME} broke down.")
        return getattr(RUNTIME, f"load_{stage}")(bundle, artifact, options)

    def convert(self, networks, writer, weights, decoder, progress) -> None:
        RUNTIME.convert(networks, Renamed(writer), weights, decoder, progress)


@contextmanager
def registered() -> Iterator[SecondRuntime]:
    runtime = SecondRuntime()
    register_runtime(runtime)
    try:
        yield runtime
    finally:
        unregister_runtime(NAME)
