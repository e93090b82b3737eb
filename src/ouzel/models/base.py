"""What a model family offers: how to read its checkpoint, how to turn a request into talker rows, which networks to convert."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ouzel.adapters import PromptRows
from ouzel.request import SpeechRequest, VoiceInfo

if TYPE_CHECKING:
    from ouzel.bundle import Bundle, BundleWriter
    from ouzel.pipeline.topology import PipelineConfig

Progress = Callable[[str, float], None]
"""Called with (label of the running step, fraction 0..1 of the whole work)."""


class Networks(Protocol):
    """The three torch modules of a checkpoint, with explicit state tensors; used only to convert.

    Each module has a `.spec`: its dimensions as plain JSON values. torch is typed as Any so that reading this needs no torch.
    """

    @property
    def talker(self) -> Any: ...
    @property
    def predictor(self) -> Any: ...
    @property
    def decoder(self) -> Any: ...


class Encoders(Protocol):
    """The torch networks of a checkpoint that read a recording, used only to convert; None for what it lacks.

    speaker_encoder: a module, forward(samples) -> vector. codec_encoder: with the modules `.features`, forward(samples) -> rows,
    and `.codes`, forward(rows) -> codes. Each has a `.spec`, as in `Networks`.
    """

    @property
    def speaker_encoder(self) -> Any | None: ...
    @property
    def codec_encoder(self) -> Any | None: ...


@runtime_checkable
class Frontend(Protocol):
    """Requests in, talker rows out; made from a bundle, numpy only."""

    @property
    def task(self) -> str:
        """What the checkpoint was trained for: "CustomVoice", "VoiceDesign" or "Base"."""

    @property
    def voices(self) -> Sequence[VoiceInfo]: ...
    @property
    def languages(self) -> Sequence[str]: ...
    @property
    def speeds(self) -> tuple[float, float]:
        """Least and greatest speed that a request may ask for; (1, 1) if the model sets its own pace."""

    @property
    def hidden_size(self) -> int: ...
    @property
    def groups(self) -> int: ...
    @property
    def sample_rate(self) -> int: ...

    @property
    def stop_token_id(self) -> int:
        """The codebook-0 id that ends speech; joins `TalkerSampling.stop_token_ids`."""

    @property
    def segment_tokens(self) -> int:
        """`count_tokens` of the longest text that is comfortably spoken in one go."""

    @property
    def codec_ids(self) -> int:
        """Number of codebook-0 ids, control ids included."""

    def frame_budget(self, text_tokens: int, configured: int, requested: int | None = None) -> int:
        """`TalkerSampling.max_tokens` of a segment: a net under runaways, at most `configured`; `requested` is honoured.

        text_tokens: of `count_tokens`. Rows that know their frames limit the talker more closely.
        """

    def count_tokens(self, text: str, request: SpeechRequest | None = None) -> int:
        """Token ids of the spoken text alone, without the chat template; may be an estimate, but 0 means none at all.

        request: a resolved one, for models that make more or fewer of them by voice or speed.
        """

    def review(self, text: str) -> tuple[str, ...]:
        """Sentences on what of the text will not be spoken, mostly none. Raises UsageError when nothing will."""

    def resolve(self, request: SpeechRequest) -> SpeechRequest:
        """The request with defaults filled in. Raises UsageError for a voice, language or task that this bundle lacks."""

    def rows(self, request: SpeechRequest, text: str) -> PromptRows:
        """Talker input of one segment `text` of a resolved request (contract 4.4)."""


@runtime_checkable
class Family(Protocol):
    """A model family, e.g. qwen3_tts: one object a family, found by name (`ouzel.models.registry`)."""

    @property
    def name(self) -> str: ...

    def pipeline(self) -> PipelineConfig:
        """Stages and their processors (contract 2.1)."""

    def recognises(self, config: Mapping[str, Any]) -> bool:
        """Whether a checkpoint's parsed config.json is of this family."""

    def read_checkpoint(self, path: Path) -> Any:
        """The checkpoint in Hugging Face layout at `path`. Raises CheckpointError."""

    def write_frontend(self, checkpoint: Any, writer: BundleWriter, weights: str, progress: Progress) -> None:
        """Write config, tokenizer and embedding tables into the bundle being made."""

    def networks(self, checkpoint: Any) -> Networks:
        """torch modules with the checkpoint's weights; needs the `convert` extra."""

    def frontend(self, bundle: Bundle, *, max_instructions: int | None = None) -> Frontend:
        """The front end that a finished bundle describes. max_instructions: characters, None = the family's own limit."""


@runtime_checkable
class CloningFamily(Protocol):
    """What a family has besides if its models can take a recording for a voice."""

    def encoders(self, checkpoint: Any) -> Encoders:
        """The networks that make a reference of a recording, with the checkpoint's weights; needs the `convert` extra."""
