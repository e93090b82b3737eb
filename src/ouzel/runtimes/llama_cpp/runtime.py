"""llama.cpp as one of ouzel's runtimes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ouzel.errors import OuzelError, choose
from ouzel.runtimes.base import Offer, Progress, RuntimeStatus, StageOptions
from ouzel.runtimes.llama_cpp.decoder import LlamaDecoder
from ouzel.runtimes.llama_cpp.export_decoder import DECODERS
from ouzel.runtimes.llama_cpp.gguf_write import WEIGHTS
from ouzel.runtimes.llama_cpp.library import library
from ouzel.runtimes.llama_cpp.predictor import LlamaPredictor
from ouzel.runtimes.llama_cpp.speaker import LlamaSpeakerEncoder
from ouzel.runtimes.llama_cpp.talker import LlamaTalker

if TYPE_CHECKING:
    from ouzel.bundle import Artifact, Bundle, BundleWriter

NAME = "llama_cpp"
DEVICES = ("cpu",)
OFFER = Offer({"talker": WEIGHTS, "predictor": WEIGHTS, "decoder": DECODERS}, extra="llama-cpp")


class LlamaCpp:
    """Runtime over a shared library of llama.cpp (`library`). Every stage it loads is for one thread at a time."""

    name = NAME
    offer = OFFER
    encoders = ("speaker_encoder",)

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

    def load_decoder(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> LlamaDecoder:
        """As `load_talker`."""
        return LlamaDecoder(bundle, artifact, _checked(artifact, options))

    def load_encoder(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> LlamaSpeakerEncoder:
        """As `load_talker`."""
        return LlamaSpeakerEncoder(bundle, artifact, _checked(artifact, options))

    def convert(self, networks: Any, writer: BundleWriter, weights: str, decoder: str, progress: Progress) -> None:
        """Write the three files into the folder `llama_cpp/` (see `Runtime.convert`); needs gguf, not the library."""
        from ouzel.runtimes.llama_cpp.export import export_predictor, export_talker, predictor_meta, talker_meta
        from ouzel.runtimes.llama_cpp.export_decoder import decoder_meta, export_decoder

        def part(label: str, start: float, end: float) -> Callable[[float], None]:
            return lambda done: progress(label, start + (end - start) * done)

        talker, file = networks.talker, f"{NAME}/talker.gguf"
        export_talker(talker, writer.path(file), weights, part("talker", 0.0, 0.65))
        writer.add_artifact("talker", NAME, weights, [file], talker_meta(talker))
        predictor, file = networks.predictor, f"{NAME}/predictor.gguf"
        export_predictor(predictor, writer.path(file), weights, part("code predictor", 0.65, 0.9))
        writer.add_artifact("predictor", NAME, weights, [file], predictor_meta(predictor))
        network, file = networks.decoder, f"{NAME}/decoder.gguf"
        export_decoder(network, writer.path(file), decoder, part("decoder", 0.9, 1.0))
        writer.add_artifact("decoder", NAME, decoder, [file], decoder_meta(network))

    def convert_encoder(self, stage: str, network: Any, writer: BundleWriter, progress: Progress) -> None:
        """Write `llama_cpp/speaker_encoder.gguf`; needs gguf, not the library."""
        from ouzel.runtimes.llama_cpp.export_speaker import export_speaker, speaker_meta

        file = f"{NAME}/{stage}.gguf"
        export_speaker(network, writer.path(file), lambda done: progress("speaker encoder", done))
        writer.add_artifact(stage, NAME, "fp32", [file], speaker_meta(network))


def _checked(artifact: Artifact, options: StageOptions) -> StageOptions:
    if options.device not in DEVICES:
        raise choose("device of llama_cpp", options.device, DEVICES)
    if options.precision not in ("auto", artifact.weights):
        raise choose(f"precision of this {artifact.stage}", options.precision, ("auto", artifact.weights))
    return options


RUNTIME = LlamaCpp()
