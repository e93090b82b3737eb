"""Server-sent events of a speech (contract 8.3)."""

from __future__ import annotations

import base64
import json
from typing import Any

from ouzel.serve.api_error import ApiError


def event(kind: str, **fields: Any) -> bytes:
    data = json.dumps({"type": kind, **fields}, separators=(",", ":"))
    return f"event: {kind}\ndata: {data}\n\n".encode()


def delta(audio: bytes, format_name: str) -> bytes:
    return event("speech.audio.delta", audio=base64.b64encode(audio).decode(), response_format=format_name)


def done(usage: dict[str, Any], finish_reason: str, seed: int) -> bytes:
    """finish_reason and seed are ours; readers of the server's events pass over them."""
    return event("speech.audio.done", usage=usage, finish_reason=finish_reason, seed=seed)


def failed(problem: ApiError) -> bytes:
    """After audio was sent: what came so far is not the speech that was asked for."""
    error = {**problem.error, "type": "server_error", "partial_audio": True, "action": "discard"}
    return event("speech.audio.error", error=error)
