"""MNN as one of ouzel's runtimes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ouzel.errors import BundleError, MissingExtraError, SynthesisError, choose
from ouzel.runtimes.base import Offer, Progress, RuntimeStatus, StageOptions
from ouzel.runtimes.mnn.decoder import MnnDecoder
from ouzel.runtimes.mnn.library import captured, version
from ouzel.runtimes.mnn.module import DEVICES, LOW, last, thread_count
from ouzel.runtimes.mnn.predictor import MnnPredictor
from ouzel.runtimes.mnn.talker import MnnTalker

if TYPE_CHECKING:
    from ouzel.bundle import Artifact, Bundle, BundleWriter

NAME = "mnn"
WEIGHTS = ("int8", "int4", "fp32")
OFFER = Offer({"talker": WEIGHTS, "predictor": WEIGHTS, "decoder": ("fp32",)}, extra="mnn")

Core = TypeVar("Core")


class Mnn:
    """Runtime over the `MNN` package."""

    name = NAME
    offer = OFFER

    def status(self) -> RuntimeStatus:
        """Available when a version is installed that is known to work; MNN itself is not imported."""
        try:
            found = version()
        except MissingExtraError as error:
            return RuntimeStatus(available=False, detail=str(error))
        return RuntimeStatus(available=True, version=found, detail="CPU", devices=("cpu",))

    def load_talker(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> MnnTalker:
        """precision: "auto", the artifact's weights, or "low": half floats where there are any. UsageError for others."""
        return _load(MnnTalker, bundle, artifact, _checked(bundle, artifact, options))

    def load_predictor(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> MnnPredictor:
        """As `load_talker`. Its weights are expanded to float32 unless the precision is "low" (docs/runtime-mnn.md)."""
        return _load(MnnPredictor, bundle, artifact, _checked(bundle, artifact, options))

    def load_decoder(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> MnnDecoder:
        """As `load_talker`, on the CPU and in float32 only."""
        _checked(bundle, artifact, options)
        return MnnDecoder(bundle.path(artifact.files[0]), artifact.meta, threads=thread_count(options.threads))

    def convert(self, networks: Any, writer: BundleWriter, weights: str, decoder: str, progress: Progress) -> None:
        """Export talker, code predictor and decoder into the folder `mnn/` (see `Runtime.convert`)."""
        from ouzel.runtimes.mnn.convert import to_mnn
        from ouzel.runtimes.mnn.probe import recorded
        from ouzel.runtimes.onnxruntime.export import part
        from ouzel.runtimes.onnxruntime.export_decoder import export_decoder
        from ouzel.runtimes.onnxruntime.export_plain import HIDDEN, LOGITS, export_plain_predictor, export_plain_talker

        writer.versions["MNN"] = version()
        folder = writer.path(f"{NAME}/talker.mnn").parent

        def add(stage: str, kind: str, graphs: list[Path], meta: dict[str, Any]) -> None:
            names: list[str] = []
            for graph in graphs:
                # The heads are small and many: a file of weights for each would only be more files.
                names += to_mnn(graph, folder / f"{graph.stem}.mnn", kind, beside=not graph.stem.startswith("head."))
            writer.add_artifact(stage, NAME, kind, [f"{NAME}/{name}" for name in names], meta)

        with tempfile.TemporaryDirectory(dir=folder) as name:  # on the bundle's disk: as large as the network in float32
            work = Path(name)
            network = networks.talker
            export_plain_talker(network, work, part(progress, "talker", 0.0, 0.4))
            meta = {**network.spec, "heads": network.config.num_attention_heads}
            meta["probe"] = recorded(network, meta["hidden_size"], network.caches(1), [HIDDEN, LOGITS])
            add("talker", weights, [work / "talker.onnx"], meta)
            network = networks.predictor
            names = export_plain_predictor(network, work, part(progress, "code predictor", 0.5, 0.7))
            config = network.config
            meta = {**network.spec, "heads": config.num_attention_heads, "hidden_size": config.hidden_size}
            outputs = [f"{LOGITS}.{q}" for q in range(1, meta["groups"])]
            meta["probe"] = recorded(network, meta["input_size"], network.caches(), outputs)
            add("predictor", weights, [work / name for name in names if name.endswith(".onnx")], meta)
            network = networks.decoder
            export_decoder(network, work, part(progress, "decoder", 0.8, 0.9))
            add("decoder", decoder, [work / "decoder.onnx"], network.spec)
        progress("decoder", 1.0)


def _load(
    make: Callable[[Bundle, Artifact, StageOptions], Core], bundle: Bundle, artifact: Artifact, options: StageOptions
) -> Core:
    """The stage after its first run, of which MNN prints what went wrong."""
    try:
        with captured() as lines:
            return make(bundle, artifact, options)
    except SynthesisError as error:
        raise BundleError(
            f"The {artifact.stage} of this bundle cannot be run: {error} ({last(lines)}) Convert or download the bundle again."
        ) from error


def _checked(bundle: Bundle, artifact: Artifact, options: StageOptions) -> StageOptions:
    version()
    exact = artifact.stage == "decoder"  # half floats are heard
    devices = DEVICES[:1] if exact else DEVICES
    if options.device not in devices:
        raise choose(f"device of mnn for the {artifact.stage}", options.device, devices)
    precisions = ["auto", artifact.weights, *([] if exact else [LOW])]
    if options.precision not in precisions:
        raise choose(f"precision of this {artifact.stage}", options.precision, precisions)
    for name in artifact.files:  # MNN reads zeros where a file of weights is absent or short
        path = bundle.path(name)
        if not path.is_file() or path.stat().st_size != bundle.manifest.files[name].size:
            raise BundleError(f"{path} is missing or not the file that was converted; convert or download the bundle again.")
    return options


RUNTIME = Mnn()
