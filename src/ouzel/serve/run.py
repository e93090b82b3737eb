"""Listening: bind, load the voice while /health already answers, serve, drain, stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from ouzel.api import Voice
from ouzel.errors import OuzelError
from ouzel.serve.app import create_app
from ouzel.serve.desk import Desk
from ouzel.serve.notify import READY, STOPPING, notify
from ouzel.serve.settings import ServeSettings
from ouzel.serve.transport import http_protocol, websocket_protocol

log = logging.getLogger("ouzel.serve")
BACKLOG = 128
KEEP_ALIVE_S = 30


class _Server(uvicorn.Server):
    """uvicorn without its signal handling, which would raise the signal again after a clean stop."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def run(settings: ServeSettings, load: Callable[[], Voice], *, announce: Callable[[str], None] = lambda _: None) -> None:
    """Serve until SIGTERM (drain, then stop) or Ctrl-C (silence and stop), then return.

    load: gives the voice, called in a thread. announce: told the address once the server listens, and once it is ready to speak
    how long that took. A service manager is told likewise (ouzel.serve.notify).
    Raises OuzelError when the address is taken or the voice cannot be loaded.
    """
    listener = bind(settings.host, settings.port)
    try:
        asyncio.run(_serve(settings, load, listener, announce))
    finally:
        listener.close()


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises OuzelError in one sentence."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except socket.gaierror as error:
        raise OuzelError(f"The address {host!r} is not known here: {error.strerror}.") from error
    listener = socket.socket(family, kind, proto)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)  # who connects from now on waits, and is not refused
    except OSError as error:
        listener.close()
        raise OuzelError(f"Cannot listen on {host}:{port}: {error.strerror or error}; choose another --port.") from error
    return listener


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def server_of(desk: Desk) -> uvicorn.Server:
    """What listens for a desk: `await server.serve(sockets=[...])`; `should_exit` ends it once its connections have ended."""
    config = uvicorn.Config(
        create_app(desk),
        http=http_protocol(desk.settings.write_stall_s),
        ws=websocket_protocol(desk.settings.write_stall_s),
        ws_max_size=4 * desk.settings.max_body_bytes,  # bytes; a session counts characters, and says when there are too many
        ws_per_message_deflate=False,  # samples do not shrink
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
    )
    logging.getLogger("uvicorn.error").addFilter(_unexpected)
    return _Server(config)


def _unexpected(record: logging.LogRecord) -> bool:
    """Whether uvicorn reports something new: a response that was cut short is in our own log, with its reason."""
    kind = record.exc_info[0] if record.exc_info else None
    return kind is not asyncio.CancelledError and "without completing response" not in record.getMessage()


async def _serve(
    settings: ServeSettings, load: Callable[[], Voice], listener: socket.socket, announce: Callable[[str], None]
) -> None:
    desk = Desk(settings)
    server = server_of(desk)
    loop = asyncio.get_running_loop()
    drained: list[asyncio.Task[None]] = []

    def terminate() -> None:
        """SIGTERM: what is being spoken may end. A second one, or Ctrl-C, does not wait for it."""
        if desk.draining:
            interrupt()
            return
        log.info("stopping; up to %g s for what is being spoken", settings.drain_s)
        desk.drain()
        notify(STOPPING)
        drained.append(asyncio.create_task(_drained(desk, server)))

    def interrupt() -> None:
        desk.stop()
        server.should_exit = server.force_exit = True

    loop.add_signal_handler(signal.SIGTERM, terminate)
    loop.add_signal_handler(signal.SIGINT, interrupt)
    began = time.monotonic()
    announce(f"listening on {address_of(listener)}")
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    loading = asyncio.create_task(asyncio.to_thread(load))
    voice: Voice | None = None
    try:
        await asyncio.wait({serving, loading}, return_when=asyncio.FIRST_COMPLETED)
        voice = await loading
        if not desk.draining:
            desk.open(voice)
            announce(f"ready after {time.monotonic() - began:.1f} s")
            notify(READY)
        await serving
    finally:
        desk.stop()
        server.should_exit = server.force_exit = True
        await asyncio.gather(serving, *drained, return_exceptions=True)
        loop.remove_signal_handler(signal.SIGTERM)
        loop.remove_signal_handler(signal.SIGINT)
        if voice is not None:
            await asyncio.to_thread(voice.close)


async def _drained(desk: Desk, server: uvicorn.Server) -> None:
    """Wait for what is being spoken while health checks and refusals are still answered; then let the server end."""
    try:
        await asyncio.wait_for(desk.quiet(), desk.settings.drain_s)
        server.should_exit = True
    except TimeoutError:
        desk.stop()
        server.should_exit = server.force_exit = True
