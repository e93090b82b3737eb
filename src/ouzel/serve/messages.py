"""The messages of a WebSocket session: what comes in, parsed and checked, and what goes out (contract 8.6)."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from ouzel.errors import OuzelError, UsageError, choose
from ouzel.serve.order import Order
from ouzel.serve.reading import order_of
from ouzel.serve.schema import SessionConfig
from ouzel.serve.settings import ServeSettings
from ouzel.text import GRANULARITIES

CONFIG, TEXT, DONE, CANCEL, CLOSE = "session.config", "input.text", "input.done", "input.cancel", "session.close"
TYPES = (CONFIG, TEXT, DONE, CANCEL, CLOSE)
MAX_MESSAGE_BYTES = 128 << 10  # of all but session.config
DEFAULT_FORMAT = "wav"
STREAMED_FORMAT = "pcm"
ROUTE = "websocket"


def parse(data: str | None) -> dict[str, Any]:
    """The object in a message; data None is a binary one. Raises UsageError in one sentence."""
    if data is None:
        raise UsageError("Messages are JSON in text frames; this one was binary.")
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        raise UsageError("The message is not valid JSON.") from None
    if not isinstance(message, dict):
        raise UsageError("A message must be a JSON object.")
    kind = message.get("type")
    if kind not in TYPES:
        raise UsageError(f"Unknown message type: {str(kind)[:100]!r}. Valid choices: {', '.join(TYPES)}.")
    if kind != CONFIG and len(data.encode("utf-8", "replace")) > MAX_MESSAGE_BYTES:
        raise UsageError(f"The message is too large; at most {MAX_MESSAGE_BYTES:,} bytes are taken.")
    return message


def text_of(message: dict[str, Any]) -> str:
    text = message.get("text")
    if not isinstance(text, str):
        raise UsageError("input.text needs a text: a string.")
    return text


def config_of(message: dict[str, Any], settings: ServeSettings, model: str) -> SessionConfig:
    """A checked configuration. Raises OuzelError or ApiError for one that no sentence could be spoken with."""
    try:
        config = SessionConfig.model_validate({name: value for name, value in message.items() if name != "type"})
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"session.config: {'.'.join(map(str, first['loc']))}: {first['msg']}.") from None
    if config.split_granularity not in GRANULARITIES:
        raise choose("split_granularity", config.split_granularity, GRANULARITIES)
    if config.stream_audio and (config.response_format or DEFAULT_FORMAT) != STREAMED_FORMAT:
        raise UsageError("stream_audio needs response_format pcm.")
    if config.stream_audio and config.speed not in (None, 1.0):
        raise UsageError("stream_audio needs speed 1.")
    sentence_order("x", config, settings, model)
    return config


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
