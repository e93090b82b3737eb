"""The messages of a WebSocket session: what comes in, parsed and checked, and what goes out (contract 8.6)."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from ouzel.errors import OuzelError, UsageError
from ouzel.serve.order import Order
from ouzel.serve.reading import order_of
from ouzel.serve.schema import SessionConfig
from ouzel.serve.settings import ServeSettings

CONFIG, TEXT, DONE, CANCEL, CLOSE = "session.config", "input.text", "input.done", "input.cancel", "session.close"
TYPES = (CONFIG, TEXT, DONE, CANCEL, CLOSE)
MAX_CHARS = 128 << 10  # of all messages but session.config
DEFAULT_FORMAT = "wav"
STREAMED_FORMAT = "pcm"
ROUTE = "websocket"


def parse(data: str | None, most: int) -> dict[str, Any]:
    """The object in a message of at most `most` characters; data None is a binary one. Raises UsageError in one sentence."""
    if data is None:
        raise UsageError("Messages are JSON in text frames; this one was binary.")
    if len(data) > most:
        raise _too_large(most)
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        raise UsageError("The message is not valid JSON.") from None
    if not isinstance(message, dict):
        raise UsageError("A message must be a JSON object.")
    kind = message.get("type")
    if kind not in TYPES:
        raise UsageError(f"Unknown message type: {str(kind)[:100]!r}. Valid choices: {', '.join(TYPES)}.")
    if kind != CONFIG and len(data) > MAX_CHARS:
        raise _too_large(MAX_CHARS)
    return message


def _too_large(most: int) -> UsageError:
    return UsageError(f"The message is too large; at most {most:,} characters are taken.")


def text_of(message: dict[str, Any]) -> str:
    text = message.get("text", "")
    if not isinstance(text, str):
        raise UsageError("The text of input.text must be a string.")
    return text


def no_timestamps() -> UsageError:
    return UsageError("word_timestamps needs a forced aligner, which this server does not have.")


def config_of(message: dict[str, Any], settings: ServeSettings, model: str) -> SessionConfig:
    """A configuration, checked as far as the server does it here (contract 8.6): a voice that is not there, say, is a matter of
    its sentences. Raises OuzelError, ApiError."""
    try:
        config = SessionConfig.model_validate({name: value for name, value in message.items() if name != "type"})
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"session.config: {'.'.join(map(str, first['loc']))}: {first['msg']}.") from None
    if config.stream_audio and format_of(config) != STREAMED_FORMAT:
        raise UsageError("stream_audio needs response_format pcm.")
    if config.stream_audio and config.speed not in (None, 1.0):
        raise UsageError("stream_audio needs speed 1.")
    later = dict.fromkeys(("ref_audio", "references", "word_timestamps", "x_vector_only_mode"))
    sentence_order("x", config.model_copy(update=later), settings, model)
    return config


def format_of(config: SessionConfig) -> str:
    return (config.response_format or DEFAULT_FORMAT).lower()


def sentence_order(text: str, config: SessionConfig, settings: ServeSettings, model: str) -> Order:
    plain = config.model_copy(update={"stream": None, "stream_format": None})  # which are HTTP's
    order = order_of(text, plain, settings, model, route=ROUTE, default_format=DEFAULT_FORMAT)
    order.delivery = "audio" if config.stream_audio else "whole"
    return order


def error_message(error: BaseException, sent: int = 0) -> dict[str, Any]:
    """sent: bytes of audio of the sentence that the client has already."""
    from ouzel.serve.api_error import api_error_of

    text = str(error) if isinstance(error, OuzelError) else api_error_of(error).message
    partial = {"partial_audio": True, "action": "discard"} if sent else {}
    return {"type": "error", "message": text, **partial}
