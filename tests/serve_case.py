"""A server on loopback in a thread of this process, so that a test can look at its desk from inside and call it from outside."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import numpy as np

from ouzel.api import Voice
from ouzel.engine import Engine, EngineOptions
from ouzel.serve.desk import Desk
from ouzel.serve.listening import address_of, bind
from ouzel.serve.run import server_of
from ouzel.serve.settings import ServeSettings
from toys import SPF, ToyDecoder, ToyFrontend, ToyTalker

WIDE = 10  # times the toys' rate is 24 kHz


class WideDecoder(ToyDecoder):
    """The toy decoder at the rate of the published models, which every format can hold."""

    sample_rate = ToyDecoder.sample_rate * WIDE
    samples_per_frame = SPF * WIDE

    def _frame(self, state, codes) -> np.ndarray:
        return np.repeat(super()._frame(state, codes), WIDE)


def toy_voice(talker: ToyTalker | None = None, decoder: ToyDecoder | None = None, **options) -> Voice:
    engine = Engine(talker or ToyTalker(), decoder or WideDecoder(), options=EngineOptions(**options))
    return Voice(engine, ToyFrontend(), name="toy-model")


class Served:
    """url: without a trailing slash."""

    def __init__(self, desk: Desk, url: str, loop: asyncio.AbstractEventLoop) -> None:
        self.desk = desk
        self.url = url
        self.loop = loop

    def call(self, function: Callable[[], object]) -> None:
        """Run `function` on the server's loop and wait for it."""
        done = threading.Event()

        def run() -> None:
            function()
            done.set()

        self.loop.call_soon_threadsafe(run)
        assert done.wait(30)

    def post(self, body: object, path: str = "/v1/audio/speech", **options) -> httpx.Response:
        return httpx.post(self.url + path, json=body, timeout=60, **options)

    def wait_idle(self, timeout: float = 30) -> float:
        """Seconds until nothing of any request is left."""
        began = time.monotonic()
        while not self.desk.idle:
            assert time.monotonic() - began < timeout, f"left behind: {self.desk.live()}"
            time.sleep(0.002)
        return time.monotonic() - began


@contextmanager
def served(voice: Voice | None, **settings) -> Iterator[Served]:
    """voice None: the server is still loading. The voice stays open."""
    listener = bind("127.0.0.1", 0)
    address = address_of(listener)
    started: list[Served] = []
    ready = threading.Event()

    async def main() -> None:
        desk = Desk(ServeSettings(**settings))
        if voice is not None:
            desk.open(voice)
        server = server_of(desk)
        started.append(Served(desk, address, asyncio.get_running_loop()))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        ready.set()
        stop = started[0].stop = asyncio.Event()
        await stop.wait()
        desk.stop()
        server.should_exit = server.force_exit = True
        await serving

    thread = threading.Thread(target=lambda: asyncio.run(main()), name="served")
    thread.start()
    assert ready.wait(30)
    try:
        yield started[0]
    finally:
        started[0].loop.call_soon_threadsafe(started[0].stop.set)
        thread.join(30)
        listener.close()
        assert not thread.is_alive()
