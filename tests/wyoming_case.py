"""The package `wyoming` as a client of a server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from wyoming.audio import AudioChunk
from wyoming.client import AsyncClient
from wyoming.event import Event
from wyoming.tts import Synthesize, SynthesizeChunk, SynthesizeStart, SynthesizeStop, SynthesizeVoice

from ouzel.api import Voice
from ouzel.engine import Engine
from ouzel.serve.listening import address_of, bind
from ouzel.serve.wyoming import WyomingServer
from serve_case import Served, WideDecoder, served
from toys import ToyFrontend, ToyTalker

ENDLESS = " ".join(["word"] * 300)  # 3,600 frames of a toy that does not end by itself


def seeded(talker: ToyTalker | None = None, decoder: WideDecoder | None = None, frontend: ToyFrontend | None = None) -> Voice:
    """Its speech can be compared: the protocol has no place for a seed."""
    return Voice(Engine(talker or ToyTalker(), decoder or WideDecoder()), frontend or ToyFrontend(), name="toy-model", seed=7)


class WyomingServed:
    """http: the same desk's HTTP server."""

    def __init__(self, http: Served, server: WyomingServer, uri: str) -> None:
        self.http = http
        self.desk = http.desk
        self.server = server
        self.uri = uri

    @property
    def port(self) -> int:
        return int(self.uri.rpartition(":")[2])

    def wait_idle(self) -> float:
        """Seconds until nothing of any request is left."""
        return self.http.wait_idle()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self.server.close(), self.http.loop).result(30)

    def client(self) -> AsyncClient:
        return AsyncClient.from_uri(self.uri, read_timeout=60)

    def ask(self, *events: Event, last: str) -> list[Event]:
        """What the server answers on a connection of its own, up to an event of type `last`, or "" for the connection's end."""

        async def talk() -> list[Event]:
            async with self.client() as client:
                for event in events:
                    await client.write_event(event)
                return await until(client, last)

        return asyncio.run(talk())


@contextmanager
def wyoming_served(voice: Voice, **settings) -> Iterator[WyomingServed]:
    """The voice stays open; at the end nothing may be left."""
    with served(voice, **settings) as http, bind("127.0.0.1", 0) as listener:
        uri = address_of(listener, "tcp")
        server = WyomingServer(http.desk)
        asyncio.run_coroutine_threadsafe(server.start([listener]), http.loop).result(30)
        found = WyomingServed(http, server, uri)
        try:
            yield found
        finally:
            found.close()
        assert server.sessions == 0
        found.wait_idle()


async def until(client: AsyncClient, last: str) -> list[Event]:
    found = []
    while (event := await client.read_event()) is not None:
        found.append(event)
        if event.type == last:
            return found
    assert last == "", f"the connection ended before {last}, after {shape(found)}"
    return found


def one_shot(text: str, voice: str | None = None, **options) -> Event:
    return Synthesize(text, SynthesizeVoice(name=voice) if voice else None, **options).event()


def stream(*pieces: str, voice: str | None = None) -> list[Event]:
    """What Home Assistant sends: the text once more as a whole before the end, for servers that know no streams."""
    chosen = SynthesizeVoice(name=voice) if voice else None
    chunks = [SynthesizeChunk(piece).event() for piece in pieces]
    whole = Synthesize("".join(pieces), chosen).event()
    return [SynthesizeStart(chosen).event(), *chunks, whole, SynthesizeStop().event()]


def shape(events: list[Event]) -> list[str]:
    """The types in order, several chunks of audio as one."""
    kinds = [event.type for event in events]
    return [kind for i, kind in enumerate(kinds) if kind != "audio-chunk" or i == 0 or kinds[i - 1] != "audio-chunk"]


def audio(events: list[Event]) -> bytes:
    """Of all chunks, each of which is whole samples in the announced format."""
    chunks = [AudioChunk.from_event(event) for event in events if AudioChunk.is_type(event.type)]
    assert all((chunk.rate, chunk.width, chunk.channels) == (24000, 2, 1) and len(chunk.audio) % 2 == 0 for chunk in chunks)
    return b"".join(chunk.audio for chunk in chunks)


def errors(events: list[Event]) -> list[str]:
    return [event.data["text"] for event in events if event.type == "error"]
