"""A client of the WebSocket session."""

from __future__ import annotations

import json
from contextlib import contextmanager

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

PATH = "/v1/audio/speech/stream"
STREAM = {"type": "session.config", "voice": "toy", "response_format": "pcm", "stream_audio": True, "seed": 1}
SENTENCES = STREAM | {"split_granularity": "sentence"}


class Client:
    def __init__(self, socket) -> None:
        self.socket = socket

    def send(self, *messages: object) -> None:
        for message in messages:
            self.socket.send(message if isinstance(message, str | bytes) else json.dumps(message))

    def text(self, text: str) -> None:
        self.send({"type": "input.text", "text": text})

    def done(self) -> None:
        self.send({"type": "input.done"})

    def get(self) -> dict | bytes:
        message = self.socket.recv(timeout=30)
        return message if isinstance(message, bytes) else json.loads(message)

    def until(self, kind: str) -> list[dict | bytes]:
        found = [self.get()]
        while isinstance(found[-1], bytes) or found[-1]["type"] != kind:
            found.append(self.get())
        return found

    def closed(self) -> int:
        """Read to the end; the code that the server closed with."""
        try:
            while True:
                self.socket.recv(timeout=30)
        except ConnectionClosed as end:
            return end.rcvd.code


@contextmanager
def session(server, *first, **options):
    with connect(server.url.replace("http", "ws") + PATH, max_size=None, **options) as socket:
        client = Client(socket)
        client.send(*first)
        yield client


def shape(messages: list[dict | bytes]) -> list[str]:
    """The types in order, several frames of audio as one."""
    kinds = ["audio" if isinstance(x, bytes) else x["type"] for x in messages]
    return [kind for i, kind in enumerate(kinds) if kind != "audio" or kinds[i - 1] != "audio"]


def audio(messages: list[dict | bytes]) -> bytes:
    return b"".join(x for x in messages if isinstance(x, bytes))
