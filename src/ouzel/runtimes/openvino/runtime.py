"""OpenVINO as one of ouzel's runtimes: the decoder alone."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ouzel.adapters import PredictorCore, TalkerCore
from ouzel.errors import BundleError, MissingExtraError, UsageError, choose
from ouzel.runtimes.base import Offer, Progress, RuntimeStatus, StageOptions
from ouzel.runtimes.openvino.decoder import OpenVinoDecoder
from ouzel.runtimes.openvino.library import core, openvino, version

if TYPE_CHECKING:
    from ouzel.bundle import Artifact, Bundle, BundleWriter

NAME = "openvino"
OFFER = Offer({"decoder": ("fp32",)}, extra="openvino")
DEVICES = ("cpu",)
_HALF = "bf16"
_MAX_THREADS = 1024


class OpenVino:
    """Runtime over the `openvino` package."""

    name = NAME
    offer = OFFER

    def status(self) -> RuntimeStatus:
        """Available when a version is installed that is known to work; OpenVINO itself is not imported."""
        try:
            found = version()
        except MissingExtraError as error:
            return RuntimeStatus(available=False, detail=str(error))
        return RuntimeStatus(available=True, version=found, detail="CPU, the decoder", devices=DEVICES)

    def load_talker(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> TalkerCore:
        """Not offered: UsageError."""
        raise _no_stage("talker")

    def load_predictor(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> PredictorCore:
        """Not offered: UsageError."""
        raise _no_stage("code predictor")

    def load_decoder(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> OpenVinoDecoder:
        """precision: "auto" or "fp32", or "bf16" on CPUs that have it. UsageError for anything else."""
        if options.device not in DEVICES:
            raise choose("device of openvino", options.device, DEVICES)
        if not 0 <= options.threads <= _MAX_THREADS:
            raise UsageError(f"The number of threads must be from 0 (automatic) to {_MAX_THREADS}, not {options.threads}.")
        if options.precision not in ("auto", artifact.weights, _HALF):
            raise choose("precision of this decoder", options.precision, ("auto", artifact.weights, _HALF))
        version()
        for name in artifact.files:
            if not bundle.path(name).is_file():
                raise BundleError(f"{bundle.path(name)} does not exist; convert or download the bundle again.")
        precision = "f32"
        if options.precision == _HALF:
            if "BF16" not in core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
                raise UsageError("This CPU does not compute in bf16; choose the precision fp32.")
            precision = _HALF
        path = bundle.path(artifact.files[0])
        return OpenVinoDecoder(path, artifact.meta, precision=precision, threads=options.threads)

    def convert(self, networks: Any, writer: BundleWriter, weights: str, decoder: str, progress: Progress) -> None:
        """Export the decoder into the folder `openvino/` (see `Runtime.convert`)."""
        from ouzel.runtimes.onnxruntime.export import part
        from ouzel.runtimes.onnxruntime.export_decoder import export_decoder

        writer.versions[NAME] = version()
        out = writer.path(f"{NAME}/decoder.xml")
        network = networks.decoder
        with tempfile.TemporaryDirectory(dir=out.parent) as name:
            export_decoder(network, Path(name), part(progress, "decoder", 0.0, 0.9))
            model = core().read_model(str(Path(name) / "decoder.onnx"))
            openvino().save_model(model, str(out), compress_to_fp16=False)
        writer.add_artifact("decoder", NAME, decoder, [f"{NAME}/decoder.xml", f"{NAME}/decoder.bin"], network.spec)
        progress("decoder", 1.0)


def _no_stage(stage: str) -> UsageError:
    return UsageError(f"OpenVINO runs the decoder only, not the {stage}; place the {stage} on another runtime.")


RUNTIME = OpenVino()
