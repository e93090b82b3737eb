"""What stands before every route: who may call, how much they may send and how long that may take."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ouzel.serve.api_error import ApiError
from ouzel.serve.order import new_id
from ouzel.serve.page import PAGE
from ouzel.serve.settings import ServeSettings
from ouzel.serve.speech import error_response

OPEN_PATHS = frozenset({*PAGE, "/health", "/ready"})  # for the page, which asks for the key, and for whoever watches the process
_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)
_WITH_BODY = ("POST", "PUT", "PATCH")


class Guard:
    """ASGI middleware. Gives each request an id (the client's own where it is sane), in scope["state"] and in the response."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self._app = app
        self._settings = settings
        self._keys = [key.encode() for key in settings.api_keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        asked = headers.get("x-request-id", "")
        request_id = asked if _ID.fullmatch(asked) else new_id()
        scope.setdefault("state", {})["request_id"] = request_id

        async def labelled(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start", "websocket.accept"):
                MutableHeaders(scope=message)["x-request-id"] = request_id
            await send(message)

        try:
            self._check_caller(scope, headers)
            if scope["type"] == "http" and scope["method"] in _WITH_BODY:
                receive = await self._received(headers, receive)
        except ApiError as problem:
            await _refuse(problem, scope, receive, labelled)
            return
        await self._app(scope, receive, labelled)

    # ---- who

    def _check_caller(self, scope: Scope, headers: Mapping[str, str]) -> None:
        settings = self._settings
        if settings.loopback and not self._keys:
            # A web page may make a browser call any address under a name of its own; it cannot forge the name.
            host = _host(headers.get("host", ""))
            if not _is_address(host) and host not in ("localhost", *settings.allowed_hosts):
                raise ApiError(403, f"This server is not known as {host!r}; --allowed-host adds a name.")
        origin = headers.get("origin")
        if scope["type"] == "websocket" and origin is not None and not self._friendly(origin, headers.get("host", "")):
            raise ApiError(403, f"Pages of {origin!r} may not connect; --cors-origin admits them.")
        preflight = scope["type"] == "http" and scope["method"] == "OPTIONS" and "access-control-request-method" in headers
        if self._keys and scope["path"] not in OPEN_PATHS and not preflight:
            kind, _, key = headers.get("authorization", "").partition(" ")
            given = key.strip().encode() if kind.lower() == "bearer" else b""
            # Every key is compared, so that the time tells nothing about them.
            if not any([hmac.compare_digest(given, known) for known in self._keys]):
                raise ApiError(401, "Give a valid API key: Authorization: Bearer KEY.")

    def _friendly(self, origin: str, host: str) -> bool:
        return urlsplit(origin).netloc == host or origin in self._settings.cors_origins or "*" in self._settings.cors_origins

    # ---- how much

    async def _received(self, headers: Mapping[str, str], receive: Receive) -> Receive:
        """The whole body is read here, within its limits; what comes after it is passed on. Raises ApiError 413, 408."""
        limit = self._settings.max_body_bytes
        too_large = ApiError(413, f"The body is too large; at most {limit:,} bytes are taken (--max-body-mib).")
        length = headers.get("content-length", "")
        if length.isdigit() and int(length[:20]) > limit:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self._settings.body_timeout_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        break
                    body += message.get("body", b"")
                    if len(body) > limit:
                        raise too_large
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            raise ApiError(408, f"The body did not arrive within {self._settings.body_timeout_s:g} s.") from None
        first: list[Message] = [
            message if message["type"] == "http.disconnect" else {"type": "http.request", "body": bytes(body)}
        ]

        async def replayed() -> Message:
            return first.pop() if first else await receive()

        return replayed


async def _refuse(problem: ApiError, scope: Scope, receive: Receive, send: Send) -> None:
    response = error_response(problem)
    if problem.status == 401:
        response.headers["www-authenticate"] = "Bearer"
    if scope["type"] == "http":
        if problem.status in (408, 413):
            response.headers["connection"] = "close"  # what is left of the body is not waited for
        await response(scope, receive, send)
    elif "websocket.http.response" in scope.get("extensions", {}):
        await response(scope, receive, send)  # Starlette names the messages by the scope
    else:
        await send({"type": "websocket.close", "code": 1008, "reason": problem.message[:120]})


def _host(value: str) -> str:
    """Without the port."""
    if value.startswith("["):
        return value[1:].partition("]")[0]
    return value.rpartition(":")[0] if value.count(":") == 1 else value


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
