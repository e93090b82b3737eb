"""Connections: one whose client takes nothing for too long is cut, whatever is being sent over it.

A full write buffer makes the sender wait (that is the backpressure); here it is made sure that this ends.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

log = logging.getLogger("ouzel.serve")

if TYPE_CHECKING:
    _Base = asyncio.Protocol
else:
    _Base = object


class _Stalling(_Base):
    """To be mixed into a uvicorn protocol, in front of it."""

    stall_s: float
    loop: asyncio.AbstractEventLoop
    transport: Any
    _stall: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall = self.loop.call_later(self.stall_s, self._cut)

    def resume_writing(self) -> None:
        self._unset()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset()
        super().connection_lost(exc)

    def _cut(self) -> None:
        log.info("a client took nothing for %g s and was disconnected", self.stall_s)
        self.transport.abort()

    def _unset(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None


def http_protocol(seconds: float) -> type[H11Protocol]:
    """uvicorn's HTTP, with clients cut that take nothing for `seconds`."""
    return type("HttpConnection", (_Stalling, H11Protocol), {"stall_s": seconds})


def websocket_protocol(seconds: float) -> type[WebSocketsSansIOProtocol]:
    """uvicorn's WebSocket, likewise."""
    return type("WebSocketConnection", (_Stalling, WebSocketsSansIOProtocol), {"stall_s": seconds})
