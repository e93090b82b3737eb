"""Requests to talker rows for one converted Qwen3-TTS bundle: validation and defaults of contract 8.2, rows of 4.4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...adapters import PromptRows
from ...errors import UsageError, choose
from ...request import SpeechRequest, VoiceInfo
from .budget import frame_budget
from .config import TASKS, CodecConfig, ModelConfig
from .prompt import AUTO, PromptBuilder, Reference, Speech
from .tables import Tables
from .text_side import Tokenizer

MAX_INSTRUCTIONS = 500  # characters, the server's tts_max_instructions_length
MAX_NEW_TOKENS = 4096
SPEEDS = (0.25, 4.0)  # contract 8.2
DEFAULT_VOICE = "default"  # the server's name for "no voice given"
# Longest piece in one go: 160 tokens are about 35 s, and over minutes a voice drifts and hurries (P39, P40). A voice with an id
# a frame has learnt single sentences: 99 in 100 of them take at most 120 frames, 9.6 s.
SEGMENT_TOKENS, SEGMENT_FRAMES = 160, 120


class Qwen3TtsFrontend:
    """Implements `ouzel.models.base.Frontend`. official_dialects: see `PromptBuilder`. voices: None = their names only."""

    def __init__(
        self,
        config: ModelConfig,
        codec: CodecConfig,
        tables: Tables,
        tokenizer: Tokenizer,
        *,
        voices: Sequence[VoiceInfo] | None = None,
        official_dialects: bool = False,
        max_instructions: int | None = None,
    ) -> None:
        self.config = config
        self.codec = codec
        self._talker = config.talker
        self._max_instructions = MAX_INSTRUCTIONS if max_instructions is None else max_instructions
        self._builder = PromptBuilder(config, tables, tokenizer, official_dialects=official_dialects)
        self._tokenizer = tokenizer
        self._voices = tuple(VoiceInfo(name) for name in self._talker.spk_id) if voices is None else tuple(voices)

    @property
    def task(self) -> str:
        return self.config.task

    @property
    def voices(self) -> Sequence[VoiceInfo]:
        """Built-in voices in the checkpoint's order; the first is the default. Empty for VoiceDesign and Base."""
        return self._voices

    @property
    def languages(self) -> Sequence[str]:
        """ "auto", then the checkpoint's names, lower-case; requests may use any case."""
        return (AUTO, *self._talker.codec_language_id)

    @property
    def speeds(self) -> tuple[float, float]:
        return SPEEDS if self._tokenizer.aligned else (1.0, 1.0)

    @property
    def hidden_size(self) -> int:
        return self._talker.hidden_size

    @property
    def groups(self) -> int:
        return self._talker.num_code_groups

    @property
    def sample_rate(self) -> int:
        return self.codec.output_sample_rate

    @property
    def stop_token_id(self) -> int:
        """The codec end id, for `TalkerSampling.stop_token_ids`."""
        return self._talker.codec_eos_token_id

    @property
    def segment_tokens(self) -> int:
        return SEGMENT_FRAMES if self._tokenizer.aligned else SEGMENT_TOKENS

    @property
    def codec_ids(self) -> int:
        return self._talker.vocab_size

    def frame_budget(self, text_tokens: int, configured: int, requested: int | None = None) -> int:
        return frame_budget(text_tokens, configured, requested)

    def count_tokens(self, text: str, request: SpeechRequest | None = None) -> int:
        spoken = self._tokenizer if request is None else self._tokenizer.speaking(request.voice, _speed(request))
        return spoken.estimate(text)

    def review(self, text: str) -> tuple[str, ...]:
        return self._tokenizer.review(text)

    def resolve(self, request: SpeechRequest) -> SpeechRequest:
        """The request with task, voice, language and prompt layout filled in and names lower-cased; idempotent."""
        if not request.text.strip():
            raise UsageError("Input text cannot be empty.", param="text")
        _check_limits(request, self._max_instructions)
        instructions = (request.instructions or "").strip() or None
        self._check_task(request)
        resolved = replace(
            request,
            task_type=self.task,
            voice=self._voice(request),
            language=self._language(request.language),
            instructions=instructions,
            non_streaming_mode=self._layout(request.non_streaming_mode),
        )
        self._check_speed(request.speed)
        if self.task == "Base":
            _check_base(resolved)
        elif self.task == "VoiceDesign" and instructions is None:
            raise UsageError("This VoiceDesign model needs instructions that describe the voice.", param="instructions")
        elif self._tokenizer.aligned and instructions is not None:
            raise UsageError("This model's voices follow no instructions; leave them out.", param="instructions")
        elif self.task == "CustomVoice" and instructions is not None and self.config.tts_model_size == "0b6":
            raise UsageError(
                "This 0.6B model was not trained to follow instructions; leave them out or use the 1.7B model.",
                param="instructions",
            )
        return resolved

    def rows(self, request: SpeechRequest, text: str) -> PromptRows:
        """Talker input of segment `text` of a resolved request."""
        reference = None
        if request.ref_codes is not None:
            reference = Reference(request.ref_codes, request.ref_text or "")
        speech = Speech(
            text=text,
            language=request.language or AUTO,
            voice=request.voice,
            speaker=request.speaker_embedding,
            reference=reference,
            instructions=request.instructions,
            non_streaming=bool(request.non_streaming_mode),
            speed=_speed(request),
        )
        rows = self._builder.build(speech)
        return replace(rows, frames=rows.text_tokens) if self._tokenizer.aligned else rows

    def _layout(self, non_streaming: bool | None) -> bool:
        """The layout that the checkpoint was trained for (contract 4.5), unless asked otherwise."""
        if self._tokenizer.aligned:
            if non_streaming:
                raise UsageError(
                    "This model's voices take their text along with the speech; leave non_streaming_mode out.",
                    param="non_streaming_mode",
                )
            return False
        return self.task != "Base" if non_streaming is None else non_streaming

    def _check_speed(self, speed: float | None) -> None:
        if speed is None:
            return
        if not SPEEDS[0] <= speed <= SPEEDS[1]:
            raise UsageError(f"speed must be from {SPEEDS[0]:g} to {SPEEDS[1]:g}, but is {speed:g}.", param="speed")
        if speed != 1 and not self._tokenizer.aligned:
            raise UsageError(
                f"This model sets its own pace and cannot speak at speed {speed:g}; leave the speed out.", param="speed"
            )

    def _check_task(self, request: SpeechRequest) -> None:
        clone = {
            "speaker_embedding": request.speaker_embedding,
            "ref_codes": request.ref_codes,
            "ref_text": request.ref_text,
        }
        given = [name for name, value in clone.items() if value is not None]
        wanted = request.task_type
        if wanted is None:
            wanted = "Base" if given else self.task
        known = {task.lower(): task for task in TASKS.values()}
        if wanted.lower() not in known:
            raise choose("task_type", wanted, known.values())
        if known[wanted.lower()] != self.task:
            why = f" ({', '.join(given)} given)" if given and request.task_type is None else ""
            raise UsageError(f"This is a {self.task} model; it cannot do {known[wanted.lower()]}{why}.", param="task_type")
        if given and self.task != "Base":
            raise UsageError(
                f"{', '.join(given)}: only Base models take a reference; this is a {self.task} model.", param=given[0]
            )

    def _voice(self, request: SpeechRequest) -> str | None:
        name = (request.voice or "").strip()
        names = [voice.name for voice in self._voices]
        if not name or name.lower() == DEFAULT_VOICE:
            return names[0] if self.task == "CustomVoice" and names else None
        if self.task != "CustomVoice":
            raise UsageError(
                f"Unknown voice {name!r}: this {self.task} model has no built-in voices; leave the voice out"
                + (" and describe it in the instructions." if self.task == "VoiceDesign" else " and give a reference."),
                param="voice",
            )
        return _match("voice", name, {voice.lower(): voice for voice in names})

    def _language(self, language: str | None) -> str:
        return _match("language", (language or AUTO).strip() or AUTO, {name.lower(): name for name in self.languages})


def _speed(request: SpeechRequest) -> float:
    return 1.0 if request.speed is None else request.speed


def _match(kind: str, value: str, names: Mapping[str, str]) -> str:
    if value.lower() not in names:
        raise choose(kind, value, names.values())
    return names[value.lower()]


def _check_limits(request: SpeechRequest, max_instructions: int) -> None:
    count = len(request.instructions or "")
    if count > max_instructions:
        raise UsageError(f"Instructions may have at most {max_instructions} characters, but have {count}.", param="instructions")
    if request.max_new_tokens is not None and not 1 <= request.max_new_tokens <= MAX_NEW_TOKENS:
        raise UsageError(f"max_new_tokens must be from 1 to {MAX_NEW_TOKENS}, but is {request.max_new_tokens}.")


def _check_base(request: SpeechRequest) -> None:
    if request.speaker_embedding is None:
        raise UsageError(
            "This Base model needs a reference voice: give a recording (ref_audio), or speaker_embedding, or this and ref_codes "
            "and ref_text.",
            param="speaker_embedding",
        )
    if (request.ref_codes is None) != (not (request.ref_text or "").strip()):
        missing = "ref_text, what is said in the reference" if request.ref_codes is not None else "ref_codes"
        raise UsageError(
            f"Imitating a reference in context needs ref_codes and ref_text together; {missing} is missing.", param="ref_text"
        )
