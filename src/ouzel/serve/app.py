"""The application: routes of every protocol in front of one desk."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ouzel.errors import OuzelError
from ouzel.serve.api_error import ApiError, api_error_of
from ouzel.serve.batch import BatchResponse, check_batch
from ouzel.serve.catalogue import catalogue
from ouzel.serve.desk import Desk
from ouzel.serve.guard import Guard
from ouzel.serve.page import page
from ouzel.serve.reading import check_model, order_of
from ouzel.serve.schema import BatchBody, SpeechBody
from ouzel.serve.session import Session
from ouzel.serve.speech import SpeechResponse, error_response

# What an OpenAI client sends when it is going to read the body as it comes.
_READS_STREAM = ("x-stainless-raw-response", "stream")
_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"description": "the request cannot be honoured as asked"},
    404: {"description": "another model"},
    429: {"description": "too many requests are being spoken"},
    503: {"description": "the voice is being loaded, or the server is stopping"},
}
_AUDIO: dict[str, Any] = {"content": {"audio/*": {}, "text/event-stream": {}}}


def create_app(desk: Desk) -> FastAPI:
    """The ASGI application of one desk. It may be mounted anywhere; `ouzel.serve.run` listens with it."""
    settings = desk.settings
    # The documentation pages would load scripts from elsewhere; the document itself is there.
    app = FastAPI(title="ouzel", docs_url=None, redoc_url=None, openapi_url="/openapi.json")
    app.state.desk = desk
    app.include_router(catalogue(desk))
    app.include_router(page())

    @app.post("/v1/audio/speech", response_class=Response, responses={200: _AUDIO, **_ERRORS})
    async def speech(body: SpeechBody, request: Request) -> Response:
        """Speak a text."""
        order = order_of(body.input, body, settings, desk.voice.name, route="speech")
        order.id = request.state.request_id
        name, value = _READS_STREAM
        if not settings.vllm and order.delivery == "whole" and request.headers.get(name) == value:
            order.delivery = "audio"
        return SpeechResponse(desk, order)

    @app.post("/v1/audio/speech/batch", responses=_ERRORS)
    async def batch(body: BatchBody) -> Response:
        """Speak several texts; the answer has the audio of each in base64."""
        check_model(body.model, settings, desk.voice.name)
        check_batch(body, settings.max_batch_items)
        return BatchResponse(desk, body)

    @app.websocket("/v1/audio/speech/stream")
    async def stream(websocket: WebSocket) -> None:
        await Session(desk, websocket).run()

    app.add_exception_handler(ApiError, _refused)
    app.add_exception_handler(OuzelError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_middleware(Guard, settings=settings)
    if settings.cors_origins:
        app.add_middleware(CORSMiddleware, allow_origins=settings.cors_origins, allow_methods=["*"], allow_headers=["*"])
    return app


async def _refused(request: Request, error: Exception) -> Response:
    return error_response(api_error_of(error))


async def _invalid(request: Request, error: Exception) -> Response:
    """Says which field is wrong and why, and nothing of what was in it."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    where, why = "", "The body is not what this route takes."
    if found:
        path = [str(part) for part in found[0].get("loc", ()) if part != "body"]
        json_error = found[0].get("type") == "json_invalid"
        where = "" if json_error or not path else ".".join(path)
        why = "The body is not valid JSON." if json_error else f"{where or 'body'}: {found[0].get('msg', 'not valid')}."
    return error_response(ApiError(400, why, param=where or None))


async def _http(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = str(error.detail) if isinstance(error, HTTPException) else "Error"
    return error_response(ApiError(status, detail if detail.endswith(".") else f"{detail}."))
