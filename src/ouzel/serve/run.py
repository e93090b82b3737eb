"""From the start to the end of the process: load the voice while /health already answers, serve, drain, stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import uvicorn

from ouzel.api import Voice
from ouzel.serve.app import create_app
from ouzel.serve.desk import Desk
from ouzel.serve.listening import BACKLOG, address_of, bind, wyoming_listener
from ouzel.serve.notify import READY, STOPPING, notify
from ouzel.serve.settings import ServeSettings
from ouzel.serve.transport import http_protocol, websocket_protocol

if TYPE_CHECKING:
    from ouzel.serve.wyoming import WyomingServer

log = logging.getLogger("ouzel.serve")
KEEP_ALIVE_S = 30


class _Server(uvicorn.Server):
    """uvicorn without its signal handling, which would raise the signal again after a clean stop."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def run(settings: ServeSettings, load: Callable[[], Voice], *, announce: Callable[[str], None] = lambda _: None) -> None:
    """Serve until SIGTERM (drain, then stop) or Ctrl-C (silence and stop), then return.

    load: gives the voice, called in a thread. announce: told the addresses once the server listens, and once it is ready to speak
    how long that took. A service manager is told likewise (ouzel.serve.notify).
    Raises OuzelError when an address is taken or the voice cannot be loaded.
    """
    with ExitStack() as opened:
        listener = opened.enter_context(bind(settings.host, settings.port))
        wyoming = [opened.enter_context(wyoming_listener(uri)) for uri in settings.wyoming]
        asyncio.run(_serve(settings, load, listener, wyoming, announce))


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
    settings: ServeSettings,
    load: Callable[[], Voice],
    listener: socket.socket,
    wyoming_listeners: Sequence[socket.socket],
    announce: Callable[[str], None],
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
    announce(" and ".join([f"listening on {address_of(listener)}", *(address_of(w, "tcp") for w in wyoming_listeners)]))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    loading = asyncio.create_task(asyncio.to_thread(load))
    voice: Voice | None = None
    wyoming: WyomingServer | None = None
    try:
        await asyncio.wait({serving, loading}, return_when=asyncio.FIRST_COMPLETED)
        voice = await loading
        if not desk.draining:
            desk.open(voice)
            if wyoming_listeners:
                from ouzel.serve.wyoming import WyomingServer

                # Not before there is a voice: such a client cannot be told to come back later, it waits to be accepted.
                wyoming = WyomingServer(desk)
                await wyoming.start(wyoming_listeners)
            announce(f"ready after {time.monotonic() - began:.1f} s")
            notify(READY)
        await serving
    finally:
        desk.stop()
        server.should_exit = server.force_exit = True
        if wyoming is not None:
            await wyoming.close()
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
