"""From a request's JSON to an order; every message names the field it is about."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ouzel.audio.encoder import FORMATS
from ouzel.errors import UsageError, choose
from ouzel.request import SpeechRequest
from ouzel.serve.api_error import ApiError
from ouzel.serve.likeness import likeness_of
from ouzel.serve.order import Delivery, Order
from ouzel.serve.schema import SpeechOptions, VoiceId
from ouzel.serve.settings import ServeSettings

OPENAI_MODELS = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts")  # what OpenAI's clients name unless told otherwise
STREAM_FORMATS = ("audio", "sse")
SAMPLING = ("temperature", "top_p", "top_k")
VLLM_STREAMED = ("pcm", "wav")


def order_of(
    text: str, options: SpeechOptions, settings: ServeSettings, model: str, *, route: str, default_format: str | None = None
) -> Order:
    """What a body asks for. Raises ApiError 404 for another model, UsageError for what cannot be honoured.

    default_format: where none is named; None: what `settings.compat` says.
    """
    check_model(options.model, settings, model)
    name = (options.response_format or default_format or ("wav" if settings.vllm else "mp3")).lower()
    if name not in FORMATS:
        raise choose("response_format", name, FORMATS)
    order = Order(speech_request(text, options), route, format=name, sample_rate=options.sample_rate)
    order.delivery = _delivery(options, name, settings)
    order.likeness = likeness_of(options)
    if options.ref_text and (options.speaker_embedding is not None or options.x_vector_only_mode):
        order.warnings.append("ref_text was left out: only the sound of the voice is taken over.")
    if options.model_extra:
        order.warnings.append(f"Unknown fields were left out: {', '.join(sorted(options.model_extra))}.")
    return order


def check_model(name: str | None, settings: ServeSettings, own: str) -> None:
    """Raises ApiError 404 unless `name` is this server's model, or one that OpenAI's clients ask for by default."""
    valid = (own, *settings.served_names)
    if name is None or name in valid:
        return
    if not settings.vllm and name.startswith(OPENAI_MODELS):
        return
    raise ApiError(404, f"The model {name!r} is not served here; this server has {', '.join(valid)}.", param="model")


def speech_request(text: str, options: SpeechOptions) -> SpeechRequest:
    """The engine's request. Raises UsageError."""
    if not text.strip():
        raise UsageError("Input text cannot be empty.", param="text")
    _refuse_unable(options)
    return SpeechRequest(
        text=text,
        voice=_voice(options),
        language=options.language,
        instructions=options.instructions or None,
        task_type=options.task_type,
        speaker_embedding=_embedding(options.speaker_embedding),
        # With a speaker_embedding, or in x_vector_only_mode, it means nothing.
        ref_text=None if options.speaker_embedding is not None or options.x_vector_only_mode else options.ref_text or None,
        non_streaming_mode=options.non_streaming_mode,
        seed=options.seed,
        max_new_tokens=options.max_new_tokens,
        initial_codec_chunk_frames=options.initial_codec_chunk_frames,
        speed=options.speed,
        **_sampling(options),
    )


def _embedding(values: list[float] | None) -> NDArray[np.float32] | None:
    if values is None:
        return None
    with np.errstate(over="ignore"):
        vector = np.asarray(values, np.float32)
    if not np.isfinite(vector).all():
        raise UsageError("speaker_embedding must hold finite numbers.", param="speaker_embedding")
    return vector


def _voice(options: SpeechOptions) -> str | None:
    if options.voice is None:
        return options.speaker
    return options.voice.id if isinstance(options.voice, VoiceId) else options.voice


def _sampling(options: SpeechOptions) -> dict[str, Any]:
    given = dict(options.extra_params or {})
    for name in given:
        if name not in SAMPLING:
            raise choose("extra_params", name, SAMPLING)
    for name in SAMPLING:
        value = getattr(options, name)
        if value is not None:
            given[name] = value
    if given.get("top_k") == -1:  # the server's way to say "all"
        given["top_k"] = 0
    return given


def _refuse_unable(options: SpeechOptions) -> None:
    """What no part of this server can do."""
    if options.x_vector_only_mode is False and options.speaker_embedding is not None:
        raise UsageError("x_vector_only_mode must be true, or left out, with a speaker_embedding.", param="x_vector_only_mode")
    if options.word_timestamps:
        raise UsageError("word_timestamps needs a forced aligner, which this server does not have.", param="word_timestamps")


def _delivery(options: SpeechOptions, name: str, settings: ServeSettings) -> Delivery:
    wanted = options.stream_format
    if wanted is not None and wanted not in STREAM_FORMATS:
        raise choose("stream_format", wanted, STREAM_FORMATS)
    if wanted is None and options.stream:
        wanted = "sse"
    if wanted is None:
        # A file that begins with its length is made whole for a client that did not ask for a stream.
        return "whole" if settings.vllm or FORMATS[name].sized else "audio"
    if settings.vllm and name not in VLLM_STREAMED:
        raise UsageError(f"Only {' and '.join(VLLM_STREAMED)} are streamed, not {name}.", param="response_format")
    if settings.vllm and options.speed not in (None, 1.0):
        raise UsageError("speed must be 1 when streaming.", param="speed")
    return cast(Delivery, wanted)
