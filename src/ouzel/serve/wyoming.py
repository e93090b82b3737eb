"""Listening for Wyoming, the protocol of Home Assistant, beside HTTP."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence

from ouzel.serve.desk import Desk
from ouzel.serve.wyoming_events import most_bytes
from ouzel.serve.wyoming_session import LAST_WORDS_S, WyomingSession

log = logging.getLogger("ouzel.serve")


class WyomingServer:
    """Accepts the clients of a desk that has its voice."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._servers: list[asyncio.Server] = []
        self._sessions: dict[asyncio.Task[None], WyomingSession] = {}

    @property
    def sessions(self) -> int:
        return len(self._sessions)

    async def start(self, listeners: Sequence[socket.socket]) -> None:
        """Serve on listening sockets."""
        if not self._desk.voice.voices:
            log.warning("This model has no voices by name, so there are none to offer to Wyoming clients.")
        most = most_bytes(self._desk.settings.max_input_chars)
        for listener in listeners:
            start = asyncio.start_unix_server if listener.family == socket.AF_UNIX else asyncio.start_server
            self._servers.append(await start(self._accept, sock=listener, limit=most))

    async def close(self) -> None:
        """No new clients; those that are here hear the end of what is being spoken, if that comes soon."""
        for server in self._servers:
            server.close()
        for session in self._sessions.values():
            session.finish()
        if self._sessions:
            _, late = await asyncio.wait(self._sessions, timeout=2 * LAST_WORDS_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        session = WyomingSession(self._desk, reader, writer)
        if task is None or len(self._sessions) >= self._desk.settings.max_wyoming_clients:
            await session.refuse()
            return
        self._sessions[task] = session
        try:
            await session.run()
        finally:
            del self._sessions[task]
