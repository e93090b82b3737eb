"""What is no Wyoming: bytes of all kinds, at the parser and at the whole server. It never hangs, breaks or forgets anything."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import socket

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from wyoming.event import Event, read_event
from wyoming.info import Describe

from ouzel.errors import UsageError
from ouzel.serve import wyoming_events
from ouzel.serve.wyoming_events import MAX_PAYLOAD_BYTES, most_bytes
from ouzel.serve.wyoming_session import MAX_UNSPOKEN
from toys import Barrier, ToyTalker
from wyoming_case import audio, errors, one_shot, seeded, shape, stream, wyoming_served

MOST = most_bytes(20_000)


@pytest.fixture(scope="module")
def server():
    with seeded() as voice, wyoming_served(voice) as found:
        yield found


def line(type="synthesize", **header) -> bytes:
    return json.dumps({"type": type, **header}).encode() + b"\n"


def answers(server, data: bytes, *, more: bool = False) -> list[Event]:
    """Everything that comes back on a connection of its own. more: the client stays, so that the server has to end it."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as client:
        client.sendall(data)
        if not more:
            client.shutdown(socket.SHUT_WR)
        try:
            found = io.BytesIO(client.makefile("rb").read())
        except ConnectionResetError:
            return []
    events = []
    while (event := read_event(found)) is not None:
        events.append(event)
    assert not found.read()
    return events


NO_EVENTS = {
    "no JSON": b"hello\n",
    "an empty line": b"\n",
    "a list": b"[]\n",
    "a number": b"5\n",
    "null": b"null\n",
    "no UTF-8": b'{"type": "\xff"}\n',
    "UTF-16": '{"type": "ping"}\n'.encode("utf-16"),
    "half an object": b'{"type": "ping"\n',
    "no type": b"{}\n",
    "a type that is none": line(["ping"]),
    "data that is none": line(data=[1]),
    "a negative length": line(data_length=-1),
    "a length that is text": line(data_length="5"),
    "half a byte": line(data_length=0.5),
    "a truth as length": line(payload_length=True),
    "a negative payload": line(payload_length=-(10**30)),
    "a huge length": line(data_length=10**12),
    "a huge payload": line(payload_length=MAX_PAYLOAD_BYTES + 1),
    "more digits than a number has": b'{"type": "ping", "data_length": ' + b"9" * 10_000 + b"}\n",
    "data that is no object": line(data_length=4) + b"null",
    "data that is no JSON": line(data_length=4) + b"\x00\x01\x02\x03",
    "a long line": b"x" * (MOST + 2),
    "a long line of JSON": line(data={"text": "x" * MOST}),
    "a deep line": b"[" * 100_000 + b"\n",
    "deep data": line(data_length=100_000) + b'{"a":' * 20_000,
}


@pytest.mark.parametrize("data", NO_EVENTS.values(), ids=NO_EVENTS)
def test_what_is_no_event_is_an_error_and_the_end(server, data):
    (found,) = answers(server, line("ping") + data + line("ping"), more=True)[1:]
    assert (found.type, found.data["code"]) == ("error", "BadRequestError")
    assert server.ask(Describe().event(), last="info")


def test_http_of_a_web_page_gets_no_further_than_its_first_line():
    """A page may make a browser send this here, and has the body in its hands."""
    body = line(data={"text": "one"})
    head = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(body)
    talker = ToyTalker(3)
    with seeded(talker) as voice, wyoming_served(voice) as server:
        assert shape(answers(server, head + body, more=True)) == ["error"]
        assert talker.steps == 0
        assert shape(answers(server, body + line(data={"text": ""}), more=True))[-1] == "error"
        assert talker.steps > 0


def test_a_flood_of_requests_is_refused():
    """Of such as have no text in them, whose number nothing else limits."""
    barrier = Barrier(at=0)
    with seeded(ToyTalker(3, on_step=barrier)) as voice, wyoming_served(voice) as server:
        data = line(data={"text": "one"}) + line("synthesize-stop") * (MAX_UNSPOKEN + 1)
        (found,) = answers(server, data, more=True)
        assert (found.type, found.data["code"]) == ("error", "RateLimitError")
        barrier.go.set()


@pytest.mark.parametrize("data", [b"", b"{", line(data_length=10) + b"{", line(payload_length=10) + b"\x00"], ids=repr)
def test_half_an_event_is_no_event(server, data):
    assert answers(server, data) == []


def test_half_surrogates(server):
    data = b'{"type": "ping", "data": {"text": "\\ud800"}}\n'
    data += b'{"type": "synthesize-start", "data": {"voice": {"name": "\\udfff"}}}\n{"type": "synthesize-stop"}\n'
    data += b'{"type": "synthesize", "data": {"text": "\\ud800 one"}}\n{"type": "synthesize", "data": {"text": ""}}\n'
    found = answers(server, data, more=True)
    assert shape(found)[:3] == ["pong", "error", "synthesize-stopped"]
    assert found[0].data["text"] == "?"
    assert errors(found)[0].startswith("Unknown voice '\\udfff'")
    assert audio(found) == server.desk.voice.say("one").pcm16()


def test_the_longest_text_fits_in_any_spelling(server):
    """20,000 characters beyond the BMP, each of which is twelve bytes when escaped, in the line and in the data."""
    text = "\N{MUSICAL SYMBOL G CLEF}" * 20_000
    for data in (
        line(data={"text": text}),
        line(data_length=len(json.dumps({"text": text}))) + json.dumps({"text": text}).encode(),
    ):
        (found,) = answers(server, data, more=True)
        assert "20,000" not in found.data["text"]
        assert "longer" not in found.data["text"]


# ---- at random

PIECES = [
    *(event.to_dict() for event in stream("One. Two", " three.")),
    one_shot("one").to_dict(),
    {"type": "describe"},
    {"type": "synthesize", "data": {"text": 5, "voice": []}},
    {"type": "synthesize-start", "data": {"voice": {"name": "\ud800", "language": 1}}},
    {"type": "synthesize-chunk", "data": {}},
    {"type": "ping", "data": {"text": {"a": []}}},
    {"type": "audio-chunk", "payload_length": 3},
    {"type": "error", "data": None},
]
ODDITIES = [
    None,
    True,
    0,
    -1,
    2.5,
    1e308,
    float("nan"),
    10**40,
    "",
    "x",
    "\ud800",
    [],
    [{}],
    {},
    {"text": "One."},
    {"": {"": None}},
]
JSON = st.sampled_from(ODDITIES)
HEADERS = st.fixed_dictionaries(
    {"type": st.sampled_from([piece["type"] for piece in PIECES]) | JSON},
    optional={"data": JSON, "data_length": st.integers(-2, 30) | JSON, "payload_length": st.integers(-2, 30) | JSON},
)
LINES = (st.sampled_from(PIECES) | HEADERS).map(lambda header: json.dumps(header).encode() + b"\n")
BYTES = st.lists(LINES | LINES | st.binary(max_size=40), max_size=8).map(b"".join)


@settings(max_examples=200, derandomize=True, database=None)
@given(data=BYTES | st.binary(max_size=200), most=st.integers(1, 200))
def test_the_parser_gives_events_or_says_what_is_wrong(data, most):
    async def read() -> None:
        reader = asyncio.StreamReader(limit=most)
        reader.feed_data(data)
        reader.feed_eof()
        try:
            while (event := await wyoming_events.read_event(reader, most)) is not None:
                assert isinstance(event.type, str)
                assert isinstance(event.data, dict)
        except UsageError:
            pass

    with asyncio.Runner() as runner:
        runner.run(read())


def test_no_bytes_break_the_server(server, caplog):
    @settings(max_examples=60, derandomize=True, database=None)
    @given(data=BYTES)
    @example(data=b"".join(json.dumps(piece).encode() + b"\n" for piece in PIECES))
    def send(data):
        for event in answers(server, data):
            assert event.data.get("code") != "InternalServerError"

    send()
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    server.wait_idle()
    assert audio(server.ask(one_shot("one"), last="audio-stop")) == server.desk.voice.say("one").pcm16()
