"""What a runtime offers: the two talker networks, the decoder, and the conversion that makes their artifacts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ouzel.adapters import CodecEncoderAdapter, DecoderAdapter, PredictorCore, SpeakerAdapter, TalkerCore

if TYPE_CHECKING:
    from ouzel.bundle import Artifact, Bundle, BundleWriter

STAGES = ("talker", "predictor", "decoder")
"""What every voice needs; each may run on a runtime of its own."""
ENCODERS = ("speaker_encoder", "codec_encoder")
"""What makes a reference of a recording; in bundles of models that take one."""
Progress = Callable[[str, float], None]
"""Called with (label of the running step, fraction 0..1 of the whole work)."""


@dataclass(frozen=True, slots=True)
class RuntimeStatus:
    """Whether a runtime can be used here.

    detail: why not, or what was found. devices: names that StageOptions.device may take.
    """

    available: bool
    version: str = ""
    detail: str = ""
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Offer:
    """What a runtime can be converted to.

    stages: "talker", "predictor", "decoder" -> names of the weights it can store, the default first; a stage that is left out is
    not offered. Talker and predictor have the same names. extra: the pip extra that brings the runtime, "" when ouzel does.
    """

    stages: Mapping[str, tuple[str, ...]]
    extra: str = ""


@dataclass(frozen=True, slots=True)
class StageOptions:
    """Placement of one stage. threads: 0 lets the runtime choose. precision: "auto" takes the artifact's weights as they are."""

    threads: int = 0
    precision: str = "auto"
    device: str = "cpu"


@runtime_checkable
class Runtime(Protocol):
    """One inference runtime; knows no family beyond what an artifact's meta says."""

    @property
    def name(self) -> str: ...

    @property
    def offer(self) -> Offer: ...

    def status(self) -> RuntimeStatus:
        """Looks for the runtime's library without failing when it is absent."""

    def load_talker(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> TalkerCore: ...

    def load_predictor(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> PredictorCore: ...

    def load_decoder(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> DecoderAdapter: ...

    def convert(self, networks: Any, writer: BundleWriter, weights: str, decoder: str, progress: Progress) -> None:
        """Export the networks (`ouzel.models.base.Networks`) and add the artifacts to the bundle being made.

        weights: of talker and predictor, decoder: of the decoder; names in `offer`, "" for stages that are not. Files go to the
        folder that has the runtime's name; only stages in `offer` are made. A runtime whose arithmetic is approximate even at its
        finest says what it keeps in an artifact's meta, under "parity" (tests/test_runtimes_matrix.py).
        Raises MissingExtraError without the conversion libraries.
        """


@runtime_checkable
class LoweringRuntime(Protocol):
    """What a runtime has besides if its programs are lowered for one of several backends when they are converted."""

    @property
    def backends(self) -> tuple[str, ...]:
        """Their names, the default first."""

    def lowering_for(self, backend: str) -> Runtime:
        """The same runtime, converting for that backend; UsageError for an unknown name.

        What it makes and nobody could run here says why in its artifacts' meta, under "unchecked".
        """


@runtime_checkable
class EncoderRuntime(Protocol):
    """What a runtime has besides if it can carry out some of `ENCODERS`."""

    @property
    def encoders(self) -> tuple[str, ...]:
        """Which."""

    def load_encoder(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> SpeakerAdapter | CodecEncoderAdapter:
        """artifact: of a stage in `encoders`."""

    def convert_encoder(self, stage: str, network: Any, writer: BundleWriter, progress: Progress) -> None:
        """As `Runtime.convert`, of that network of `ouzel.models.base.Encoders`; in float32."""
