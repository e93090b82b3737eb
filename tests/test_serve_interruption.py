"""What the WebSocket session adds: it listens while it speaks. And clients of it that leave, stand still, or are not welcome."""

from __future__ import annotations

import random
import time

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from serve_case import served, toy_voice
from toys import Barrier, ToyTalker
from websocket_case import SENTENCES, STREAM, session, shape


@pytest.fixture(scope="module")
def server():
    with toy_voice() as voice, served(voice) as found:
        yield found
        found.wait_idle()


# ---- what is ours


def test_cancel_silences_and_the_session_goes_on():
    talker = ToyTalker(3000)
    with toy_voice(talker) as voice, served(voice) as server, session(server, SENTENCES) as client:
        client.text(" ".join(["word"] * 300) + ". And another sentence. ")
        client.done()
        client.until("audio.start")
        assert isinstance(client.get(), bytes)
        client.send({"type": "input.cancel", "played_ms": 120})
        answer = client.until("audio.cancelled")[-1]
        assert (answer["utterance_index"], answer["sentence_index"], answer["reason"]) == (0, 0, "client_cancel")
        assert answer["played_ms"] == 120
        assert answer["sent_bytes"] > 0
        server.wait_idle()
        assert len(talker.states) == 0
        talker.frames = 3
        client.text("One.")
        client.done()
        found = client.until("session.done")
        assert shape(found) == ["audio.start", "audio", "audio.done", "session.done"]
        assert (found[0]["utterance_index"], found[-1]["utterance_index"]) == (1, 1)


def test_cancel_in_silence_is_answered(server):
    with session(server, STREAM, {"type": "input.cancel"}, {"type": "input.cancel"}) as client:
        assert client.get()["type"] == client.get()["type"] == "audio.cancelled"
        client.text("half an")
        client.send({"type": "input.cancel"})
        assert client.get()["utterance_index"] == 0
        client.text("other")
        client.done()
        found = client.until("session.done")
        assert found[0]["sentence_text"] == "other"
        assert found[-1]["utterance_index"] == 1


def test_text_that_comes_while_speaking_is_spoken_in_order():
    barrier = Barrier(at=2)
    with toy_voice(ToyTalker(5, on_step=barrier)) as voice, served(voice) as server, session(server, SENTENCES) as client:
        client.text("One. ")
        assert client.get()["sentence_text"] == "One."
        client.text("Two. Three. ")
        client.done()
        client.text("Four.")
        client.done()
        barrier.go.set()
        found = client.until("session.done") + client.until("session.done")
        texts = [x["sentence_text"] for x in found if not isinstance(x, bytes) and "sentence_text" in x]
        assert texts == ["Two.", "Three.", "Four."]
        assert [x["total_sentences"] for x in found if not isinstance(x, bytes) and x["type"] == "session.done"] == [3, 1]


@pytest.mark.parametrize("how", ["close", "abort"])
def test_a_client_that_leaves_ends_its_speech(how):
    talker = ToyTalker(3000)
    with toy_voice(talker) as voice, served(voice) as server:
        times = []
        for _ in range(5):
            with session(server, STREAM) as client:
                client.text(" ".join(["word"] * 300))
                client.done()
                client.until("audio.start")
                assert isinstance(client.get(), bytes)
                if how == "abort":
                    client.socket.socket.close()
                began = time.monotonic()
            server.wait_idle()
            times.append(time.monotonic() - began)
        assert len(talker.states) == 0
        print(f"{how}: to idle max {max(times) * 1000:.0f} ms")


def test_a_client_that_reads_nothing_is_cut():
    talker = ToyTalker(3600)
    with toy_voice(talker) as voice, served(voice, write_stall_s=0.3) as server, session(server, STREAM, max_queue=1) as client:
        client.text(" ".join(["word"] * 300))
        client.done()
        server.wait_idle()
        assert talker.steps < 3600


def test_who_may_connect():
    page = {"authorization": "Bearer key", "origin": "https://evil.example"}
    with toy_voice() as voice, served(voice, api_keys=("key",)) as server:
        for headers, status in (({}, 401), (page, 403)):
            with pytest.raises(InvalidStatus) as caught, session(server, additional_headers=headers):
                pass
            assert caught.value.response.status_code == status
        with session(server, STREAM, additional_headers={"authorization": "Bearer key"}) as client:
            client.done()
            assert client.get()["type"] == "session.done"


def test_fuzz(server):
    """Random messages, valid ones among them: a reply or a close to each, never a hang or an error inside the server."""
    rng = random.Random(5)
    pieces: list[object] = [
        STREAM,
        SENTENCES,
        {"type": "input.text", "text": "One. Two "},
        {"type": "input.done"},
        {"type": "input.cancel"},
        {"type": "input.text", "text": "\ud800 \x00 \u202e"},
        {"type": "input.text", "text": ["x"]},
        {"type": ["x"]},
        {"type": None},
        {"type": "session.config", "speaker_embedding": [1e308] * 5},
        {"type": "session.config", "voice": {"id": {}}},
        "",
        "\x00",
        b"",
        b"\xff" * 100,
        "9" * 5000,
    ]
    for _ in range(40):
        with session(server, STREAM) as client:
            try:
                client.send(*(rng.choice(pieces) for _ in range(rng.randrange(1, 12))))
                client.send({"type": "input.cancel"}, {"type": "session.close"})
            except ConnectionClosed:
                continue
            assert client.closed() in (1000, 1008)
    server.wait_idle()
