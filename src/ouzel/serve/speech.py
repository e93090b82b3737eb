"""The response to POST /v1/audio/speech: whole, as a stream of bytes, or as events."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from ouzel.audio.encoder import FORMATS, Encoder, open_encoder
from ouzel.serve import events
from ouzel.serve.api_error import ApiError, api_error_of
from ouzel.serve.client import LiveResponse
from ouzel.serve.desk import Desk
from ouzel.serve.order import Order
from ouzel.serve.take import Take

log = logging.getLogger("ouzel.serve")
SSE = "text/event-stream"


class SpeechResponse(LiveResponse):
    """The status line goes out with the first block that can be heard; until then every failure is a JSON error."""

    def __init__(self, desk: Desk, order: Order) -> None:
        super().__init__()
        self._desk = desk
        self._order = order
        self._started = False

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with self._desk.take(self._order) as take:
                with open_encoder(self._order.format, take.sample_rate, streamed=self._order.delivery != "whole") as encoder:
                    if self._order.delivery == "whole":
                        await self._whole(take, encoder, send)
                    else:
                        await self._stream(take, encoder, send)
        except Exception as error:
            problem = api_error_of(error)
            if not self._started:
                await error_response(problem)(scope, receive, send)
            elif self._order.delivery == "sse":
                await _body(send, events.failed(problem), more=False)
            # A stream of bytes has no place for an error: the connection ends before the body does.

    async def _whole(self, take: Take, encoder: Encoder, send: Send) -> None:
        parts = [encoder.header()]
        async for block in take:
            parts.append(encoder.encode(block))
        parts.append(encoder.finish())
        body = b"".join(parts)
        usage = take.usage
        counts = {
            "x-vllm-omni-input-tokens": usage["input_tokens"],
            "x-vllm-omni-output-tokens": usage["output_tokens"],
            "x-vllm-omni-total-tokens": usage["total_tokens"],
            "x-vllm-omni-input-text-tokens": usage["input_token_details"]["text_tokens"],
            "x-vllm-omni-input-audio-tokens": usage["input_token_details"]["audio_tokens"],
        }
        extra = {"content-length": str(len(body)), "x-finish-reason": take.finish_reason}
        await self._start(take, send, extra | {name: str(count) for name, count in counts.items()})
        await _body(send, body, more=False)

    async def _stream(self, take: Take, encoder: Encoder, send: Send) -> None:
        sse, name = self._order.delivery == "sse", self._order.format

        async def give(data: bytes) -> None:
            if data:
                await _body(send, events.delta(data, name) if sse else data, more=True)

        block = await take.first()
        await self._start(take, send, {})
        await give(encoder.header())
        await give(encoder.encode(block))
        async for block in take:
            await give(encoder.encode(block))
        await give(encoder.finish())
        last = events.done(take.usage, take.finish_reason, take.plan.seed) if sse else b""
        await _body(send, last, more=False)

    async def _start(self, take: Take, send: Send, extra: Mapping[str, str]) -> None:
        order = self._order
        headers = {
            "content-type": SSE if order.delivery == "sse" else FORMATS[order.format].media_type,
            "x-sample-rate": str(take.sample_rate),
            "x-seed": str(take.plan.seed),
            **extra,
        }
        if order.delivery == "sse":
            headers["cache-control"] = "no-cache"
        if order.warnings:
            headers["x-warnings"] = header_text(" ".join(order.warnings))
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        self._started = True
        await send({"type": "http.response.start", "status": 200, "headers": raw})


def error_response(problem: ApiError) -> JSONResponse:
    return JSONResponse(problem.body, problem.status, problem.headers)


def header_text(text: str) -> str:
    """Visible ASCII, whatever the text has in it; other characters as escapes."""
    return text.encode("ascii", "backslashreplace").decode().replace("\r", " ").replace("\n", " ")


async def _body(send: Send, data: bytes, *, more: bool) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": more})
