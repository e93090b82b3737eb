"""The HTTP connection: one whose client takes nothing for too long is cut, whatever is being sent over it."""

from __future__ import annotations

import asyncio
import logging

from uvicorn.protocols.http.h11_impl import H11Protocol

log = logging.getLogger("ouzel.serve")


def stalling_after(seconds: float) -> type[H11Protocol]:
    """A uvicorn protocol class. A full write buffer holds its own response back (that is the backpressure) for so long only."""

    class Connection(H11Protocol):
        _stall: asyncio.TimerHandle | None = None

        def pause_writing(self) -> None:
            super().pause_writing()
            self._stall = self.loop.call_later(seconds, self._cut)

        def resume_writing(self) -> None:
            self._unset()
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            self._unset()
            super().connection_lost(exc)

        def _cut(self) -> None:
            log.info("a client took nothing for %g s and was disconnected", seconds)
            self.transport.abort()

        def _unset(self) -> None:
            if self._stall is not None:
                self._stall.cancel()
                self._stall = None

    return Connection
