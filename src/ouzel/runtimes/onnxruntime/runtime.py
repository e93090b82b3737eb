"""ONNX Runtime as one of ouzel's runtimes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ouzel.adapters import CodecEncoderAdapter, DecoderAdapter, SpeakerAdapter
from ouzel.errors import MissingExtraError, choose
from ouzel.runtimes.base import ENCODERS, Offer, Progress, RuntimeStatus, StageOptions
from ouzel.runtimes.onnxruntime.predictor import OrtPredictor
from ouzel.runtimes.onnxruntime.session import onnxruntime
from ouzel.runtimes.onnxruntime.talker import OrtTalker

if TYPE_CHECKING:
    from ouzel.bundle import Artifact, Bundle, BundleWriter

NAME = "onnxruntime"
DEVICES = ("cpu",)
WEIGHTS = ("int4", "int8", "fp32")
OFFER = Offer({"talker": WEIGHTS, "predictor": WEIGHTS, "decoder": ("fp32", "fp16", "int8")})


class OnnxRuntime:
    """Runtime over the `onnxruntime` package. Every stage it loads is a session of its own, for one thread at a time."""

    name = NAME
    offer = OFFER
    encoders = ENCODERS

    def status(self) -> RuntimeStatus:
        """Available when the package imports."""
        try:
            module = onnxruntime()
        except MissingExtraError as error:
            return RuntimeStatus(available=False, detail=str(error))
        return RuntimeStatus(available=True, version=str(module.__version__), detail="CPU", devices=DEVICES)

    def load_talker(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> OrtTalker:
        """UsageError for an unknown device or a precision that the artifact does not have."""
        return OrtTalker(bundle, artifact, _checked(artifact, options))

    def load_predictor(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> OrtPredictor:
        """As `load_talker`."""
        return OrtPredictor(bundle, artifact, _checked(artifact, options))

    def load_decoder(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> DecoderAdapter:
        """As `load_talker`."""
        from ouzel.runtimes.onnxruntime.decoder import OrtDecoder

        _checked(artifact, options)
        return OrtDecoder(bundle.path(artifact.files[0]), artifact.meta, threads=options.threads)

    def load_encoder(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> SpeakerAdapter | CodecEncoderAdapter:
        """As `load_talker`."""
        from ouzel.runtimes.onnxruntime.encoders import OrtCodecEncoder, OrtSpeakerEncoder

        _checked(artifact, options)
        graphs = [bundle.path(name) for name in artifact.files if name.endswith(".onnx")]
        if artifact.stage == "speaker_encoder":
            return OrtSpeakerEncoder(graphs[0], artifact.meta, threads=options.threads)
        return OrtCodecEncoder(graphs, artifact.meta, threads=options.threads)

    def convert_encoder(self, stage: str, network: Any, writer: BundleWriter, progress: Progress) -> None:
        """Export what reads recordings into the folder `onnxruntime/`, float32: its codes are nearest entries, and rounding picks
        others."""
        from ouzel.runtimes.onnxruntime.export import part
        from ouzel.runtimes.onnxruntime.export_encoders import export_codec_encoder, export_speaker_encoder

        export = export_speaker_encoder if stage == "speaker_encoder" else export_codec_encoder
        folder = writer.path(f"{NAME}/{stage}.onnx").parent
        names = export(network, folder, part(progress, stage.replace("_", " "), 0.0, 1.0))
        writer.add_artifact(stage, NAME, "fp32", [f"{NAME}/{name}" for name in names], network.spec)

    def convert(self, networks: Any, writer: BundleWriter, weights: str, decoder: str, progress: Progress) -> None:
        """Export talker, predictor and decoder into the folder `onnxruntime/` (see `Runtime.convert`)."""
        from ouzel.runtimes.onnxruntime.export import export_predictor, export_talker, part
        from ouzel.runtimes.onnxruntime.export_decoder import export_decoder
        from ouzel.runtimes.onnxruntime.quantize import weight_format

        format = weight_format(weights)
        folder = writer.path(f"{NAME}/talker.onnx").parent

        def add(stage: str, kind: str, names: list[str], spec: dict[str, Any]) -> None:
            writer.add_artifact(stage, NAME, kind, [f"{NAME}/{name}" for name in names], spec)

        talker = networks.talker
        add("talker", weights, export_talker(talker, folder, format, part(progress, "talker", 0.0, 0.65)), talker.spec)
        del talker
        predictor = networks.predictor
        names = export_predictor(predictor, folder, format, part(progress, "code predictor", 0.65, 0.85))
        add("predictor", weights, names, predictor.spec)
        del predictor
        network = networks.decoder
        names = export_decoder(network, folder, part(progress, "decoder", 0.85, 1.0), storage=decoder)
        add("decoder", decoder, names, network.spec)


def _checked(artifact: Artifact, options: StageOptions) -> StageOptions:
    if options.device not in DEVICES:
        raise choose("device of onnxruntime", options.device, DEVICES)
    if options.precision not in ("auto", artifact.weights):
        raise choose(f"precision of this {artifact.stage}", options.precision, ("auto", artifact.weights))
    return options


RUNTIME = OnnxRuntime()
