"""llama.cpp as one of ouzel's runtimes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ouzel.adapters import DecoderAdapter
from ouzel.errors import OuzelError, UsageError, choose
from ouzel.runtimes.base import Offer, Progress, RuntimeStatus, StageOptions
from ouzel.runtimes.llama_cpp.gguf_write import WEIGHTS
from ouzel.runtimes.llama_cpp.library import library
from ouzel.runtimes.llama_cpp.predictor import LlamaPredictor
from ouzel.runtimes.llama_cpp.talker import LlamaTalker

if TYPE_CHECKING:
    from ouzel.bundle import Artifact, Bundle, BundleWriter

NAME = "llama_cpp"
DEVICES = ("cpu",)
OFFER = Offer({"talker": WEIGHTS, "predictor": WEIGHTS}, extra="llama-cpp")


class LlamaCpp:
    """Runtime over a shared library of llama.cpp (`library`). Every stage it loads is for one thread at a time."""

    name = NAME
    offer = OFFER

    def status(self) -> RuntimeStatus:
        """Available when a library is found whose structures are known; loads it."""
        try:
            found = library()
        except OuzelError as error:
            return RuntimeStatus(available=False, detail=str(error))
        version = found.origin.rpartition(" ")[2]
        return RuntimeStatus(available=True, version=version, detail=f"CPU, {found.origin}", devices=DEVICES)

    def load_talker(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> LlamaTalker:
        """UsageError for an unknown device or a precision that the artifact does not have; BundleError for an unusable file."""
        return LlamaTalker(bundle, artifact, _checked(artifact, options))

    def load_predictor(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> LlamaPredictor:
        """As `load_talker`."""
        return LlamaPredictor(bundle, artifact, _checked(artifact, options))

    def load_decoder(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> DecoderAdapter:
        raise UsageError("llama_cpp has no decoder; place it on another runtime, such as onnxruntime.")

    def convert(self, networks: Any, writer: BundleWriter, weights: str, decoder: str, progress: Progress) -> None:
        """Write talker and predictor into the folder `llama_cpp/` (see `Runtime.convert`); needs gguf, not the library."""
        from ouzel.runtimes.llama_cpp.export import export_predictor, export_talker, predictor_meta, talker_meta

        talker = networks.talker
        file = f"{NAME}/talker.gguf"
        export_talker(talker, writer.path(file), weights, lambda done: progress("talker", 0.75 * done))
        writer.add_artifact("talker", NAME, weights, [file], talker_meta(talker))
        predictor = networks.predictor
        file = f"{NAME}/predictor.gguf"
        export_predictor(predictor, writer.path(file), weights, lambda done: progress("code predictor", 0.75 + 0.25 * done))
        writer.add_artifact("predictor", NAME, weights, [file], predictor_meta(predictor))


def _checked(artifact: Artifact, options: StageOptions) -> StageOptions:
    if options.device not in DEVICES:
        raise choose("device of llama_cpp", options.device, DEVICES)
    if options.precision not in ("auto", artifact.weights):
        raise choose(f"precision of this {artifact.stage}", options.precision, ("auto", artifact.weights))
    return options


RUNTIME = LlamaCpp()
