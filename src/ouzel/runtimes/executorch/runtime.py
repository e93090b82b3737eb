"""ExecuTorch as one of ouzel's runtimes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ouzel.errors import MissingExtraError, choose
from ouzel.runtimes.base import Offer, Progress, RuntimeStatus, StageOptions
from ouzel.runtimes.executorch.backends import BACKENDS, Backend, chosen_backend
from ouzel.runtimes.executorch.decoder import ExecuTorchDecoder
from ouzel.runtimes.executorch.library import EXTRA, executorch, installed
from ouzel.runtimes.executorch.predictor import ExecuTorchPredictor
from ouzel.runtimes.executorch.quantize import WEIGHTS
from ouzel.runtimes.executorch.talker import ExecuTorchTalker

if TYPE_CHECKING:
    from ouzel.bundle import Artifact, Bundle, BundleWriter

NAME = "executorch"
DEVICES = ("cpu",)


class ExecuTorch:
    """Runtime over the `executorch` package. The stages of a process share its one pool of threads."""

    name = NAME
    backends = tuple(BACKENDS)
    offer = Offer({"talker": WEIGHTS, "predictor": WEIGHTS, "decoder": ("fp32",)}, extra=EXTRA)

    def __init__(self, target: Backend | None = None) -> None:
        """target: what `convert` lowers for; None: what `chosen_backend` names at that time."""
        self._target = target

    def lowering_for(self, backend: str) -> ExecuTorch:
        """UsageError for a name that is not in `backends`."""
        return ExecuTorch(chosen_backend(backend))

    def status(self) -> RuntimeStatus:
        """Available when the package is of the right series and imports; the detail lists the delegates it has."""
        try:
            library = executorch()
        except MissingExtraError as error:
            return RuntimeStatus(available=False, detail=str(error))
        return RuntimeStatus(True, library.version, f"with {', '.join(library.backends)}", DEVICES)

    def load_talker(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> ExecuTorchTalker:
        """UsageError for an unknown device, a precision that the artifact lacks, or other threads than another stage's."""
        return ExecuTorchTalker(bundle, artifact, _checked(artifact, options))

    def load_predictor(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> ExecuTorchPredictor:
        """As `load_talker`."""
        return ExecuTorchPredictor(bundle, artifact, _checked(artifact, options))

    def load_decoder(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> ExecuTorchDecoder:
        """As `load_talker`."""
        _checked(artifact, options)
        return ExecuTorchDecoder(bundle.path(artifact.files[0]), artifact.meta, threads=options.threads)

    def convert(self, networks: Any, writer: BundleWriter, weights: str, decoder: str, progress: Progress) -> None:
        """Lower the networks for the chosen backend, into `executorch/` (see `Runtime.convert`)."""
        from ouzel.runtimes.executorch.export import export_decoder, export_predictor, export_talker

        installed()
        target = self._target or chosen_backend()
        network = networks.talker
        path = writer.path(f"{NAME}/talker.pte")
        meta = export_talker(network, path, weights, target, lambda part: progress("talker", 0.45 * part))
        writer.add_artifact("talker", NAME, weights, [f"{NAME}/{path.name}"], meta)
        del network
        network = networks.predictor
        path = writer.path(f"{NAME}/predictor.pte")
        meta = export_predictor(network, path, weights, target, lambda part: progress("code predictor", 0.45 + 0.25 * part))
        writer.add_artifact("predictor", NAME, weights, [f"{NAME}/{path.name}"], meta)
        del network
        path = writer.path(f"{NAME}/decoder.pte")
        meta = export_decoder(networks.decoder, path, target, lambda part: progress("decoder", 0.7 + 0.3 * part))
        writer.add_artifact("decoder", NAME, decoder, [f"{NAME}/{path.name}"], meta)


def _checked(artifact: Artifact, options: StageOptions) -> StageOptions:
    if options.device not in DEVICES:
        raise choose("device of executorch", options.device, DEVICES)
    if options.precision not in ("auto", artifact.weights):
        raise choose(f"precision of this {artifact.stage}", options.precision, ("auto", artifact.weights))
    return options


RUNTIME = ExecuTorch()
