"""The JSON bodies of the HTTP interface: OpenAI's request with vLLM-Omni's extensions (contract 8.2, 8.5)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_EMBEDDING = 8192
Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]


class VoiceId(BaseModel):
    """OpenAI's way to name a voice of one's own."""

    id: str


class SpeechOptions(BaseModel):
    """Everything but the text. null is the same as a field that is left out; unknown fields are named in x-warnings."""

    model_config = ConfigDict(extra="allow")

    model: str | None = None
    voice: str | VoiceId | None = None
    speaker: str | None = Field(None, description="the same as voice")
    instructions: str | None = None
    response_format: str | None = Field(None, description="mp3, opus, aac, flac, wav or pcm")
    sample_rate: int | None = Field(None, description="the model's own (24000), or 8000")
    speed: float | None = Field(None, description="0.25 to 4; 2 is twice as fast")
    stream: bool | None = Field(None, description="true: as events")
    stream_format: str | None = Field(None, description="audio or sse")
    task_type: str | None = Field(None, description="CustomVoice, VoiceDesign or Base; must be the model's own")
    language: str | None = None
    ref_audio: str | list[str] | None = Field(None, description="whom to imitate: a recording as data:, http(s): or file: URI")
    ref_text: str | None = Field(None, description="what is said in ref_audio")
    references: list[dict[str, Any]] | None = Field(None, description="[{audio_path, text}]: the same as ref_audio and ref_text")
    x_vector_only_mode: bool | None = Field(None, description="true: only how ref_audio sounds, without ref_text")
    speaker_embedding: Annotated[list[float], Field(max_length=MAX_EMBEDDING)] | None = None
    max_new_tokens: int | None = None
    seed: Int64 | None = None
    initial_codec_chunk_frames: int | None = None
    non_streaming_mode: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    extra_params: dict[str, Any] | None = Field(None, description="temperature, top_p, top_k")
    word_timestamps: bool | None = None


class SpeechBody(SpeechOptions):
    """POST /v1/audio/speech."""

    input: str


class BatchItem(SpeechOptions):
    """A text, and what is different for it."""

    input: str


class BatchBody(SpeechOptions):
    """POST /v1/audio/speech/batch: options for all items, and the items."""

    items: list[BatchItem]


class SessionConfig(SpeechOptions):
    """The session.config message of /v1/audio/speech/stream (contract 8.6), with the limits that are held to at once."""

    task_type: Literal["CustomVoice", "VoiceDesign", "Base"] | None = None
    speed: Annotated[float, Field(ge=0.25, le=4)] | None = None
    max_new_tokens: Annotated[int, Field(ge=1)] | None = None
    initial_codec_chunk_frames: Annotated[int, Field(ge=0)] | None = None
    stream_audio: bool = Field(False, description="audio as it is made; otherwise one message for each sentence")
    split_granularity: Literal["none", "sentence", "clause"] = "none"
