"""The WebSocket session: vLLM-Omni's message sequence."""

from __future__ import annotations

import io
import time
import wave
from contextlib import suppress

import pytest
from websockets.exceptions import ConnectionClosed

from serve_case import WideDecoder, served, toy_voice
from toys import Barrier, ToyTalker
from websocket_case import SENTENCES, STREAM, audio, session, shape


@pytest.fixture(scope="module")
def server():
    with toy_voice() as voice, served(voice) as found:
        yield found
        found.wait_idle()


# ---- the server's sequence


def test_one_utterance(server):
    with session(server, STREAM) as client:
        client.text("one two. ")
        client.text("three")
        client.done()
        found = client.until("session.done")
        assert shape(found) == ["audio.start", "audio", "audio.done", "session.done"]
        expected = server.desk.voice.say("one two. three", seed=1).pcm16()
        assert audio(found) == expected
        assert found[0] == {
            "type": "audio.start",
            "utterance_index": 0,
            "sentence_index": 0,
            "sentence_text": "one two. three",
            "format": "pcm",
            "sample_rate": 24000,
        }
        assert found[-2] == {
            "type": "audio.done",
            "utterance_index": 0,
            "sentence_index": 0,
            "total_bytes": len(expected),
            "error": False,
        }
        assert found[-1] == {"type": "session.done", "utterance_index": 0, "total_sentences": 1}
        client.send({"type": "session.close"})
        assert client.closed() == 1000


def test_sentences_are_spoken_as_soon_as_they_are_certain(server):
    with session(server, SENTENCES) as client:
        client.text("Hello there. How ")
        first = client.until("audio.done")
        assert first[0]["sentence_text"] == "Hello there."
        client.text("are you? Fine")
        client.done()
        rest = client.until("session.done")
        starts = [x for x in rest if not isinstance(x, bytes) and x["type"] == "audio.start"]
        assert [(x["sentence_index"], x["sentence_text"]) for x in starts] == [(1, "How are you?"), (2, "Fine")]
        assert rest[-1]["total_sentences"] == 3


def test_clauses(server):
    with session(server, SENTENCES | {"split_granularity": "clause"}) as client:
        client.text("Well, yes; no.")
        client.done()
        texts = [x["sentence_text"] for x in client.until("session.done") if not isinstance(x, bytes) and "sentence_text" in x]
        assert texts == ["Well,", "yes;", "no."]


def test_utterances_are_counted_and_may_be_empty(server):
    with session(server, SENTENCES) as client:
        client.done()
        assert client.get() == {"type": "session.done", "utterance_index": 0, "total_sentences": 0}
        client.text("…")
        client.done()
        assert client.get() == {"type": "session.done", "utterance_index": 1, "total_sentences": 0}
        client.text("one.")
        client.done()
        found = client.until("session.done")
        assert (found[0]["utterance_index"], found[0]["sentence_index"]) == (2, 0)
        assert found[-1] == {"type": "session.done", "utterance_index": 2, "total_sentences": 1}


def test_without_stream_audio_a_sentence_is_one_file(server):
    with session(server, {"type": "session.config", "seed": 1}) as client:
        client.text("one")
        client.done()
        start, data, done, _ = client.until("session.done")
        assert "sample_rate" not in start
        assert start["format"] == "wav"
        assert done["total_bytes"] == len(data)
        with wave.open(io.BytesIO(data)) as found:
            assert found.readframes(found.getnframes()) == server.desk.voice.say("one", seed=1).pcm16()


@pytest.mark.parametrize("name", ["mp3", "opus", "flac"])
def test_packed_files(server, name):
    with session(server, {"type": "session.config", "response_format": name}) as client:
        client.text("one")
        client.done()
        assert shape(client.until("session.done")) == ["audio.start", "audio", "audio.done", "session.done"]


def test_the_configuration_changes_between_utterances_only(server):
    with session(server, STREAM) as client:
        client.text("one")
        client.send({"type": "session.config", "response_format": "wav"})
        assert "while an utterance is open" in client.get()["message"]
        client.done()
        assert client.until("session.done")[0]["format"] == "pcm"
        client.send({"type": "session.config", "response_format": "ogg"})
        assert "response_format" in client.get()["message"]
        client.text("one")
        client.done()
        assert client.until("session.done")[0]["format"] == "pcm"
        client.send({"type": "session.config", "response_format": "wav"})
        client.text("one")
        client.done()
        assert client.until("session.done")[0]["format"] == "wav"


@pytest.mark.parametrize(
    "first",
    [
        {"type": "input.text", "text": "one"},
        "{",
        "[]",
        b"\x00",
        {"type": "nonsense"},
        STREAM | {"response_format": "wav"},
        STREAM | {"speed": 2},
        STREAM | {"split_granularity": "word"},
        STREAM | {"seed": "x"},
        STREAM | {"model": "another"},
        STREAM | {"max_new_tokens": 0},
        STREAM | {"task_type": "Nonsense"},
        STREAM | {"ref_text": "x" * (4 << 20)},
    ],
    ids=str,
)
def test_a_wrong_beginning_is_an_error_and_the_end(server, first):
    with session(server, first) as client:
        error = client.get()
        assert error["type"] == "error"
        assert error["message"].endswith(".")
        assert client.closed() == 1008


@pytest.mark.parametrize(
    "wrong",
    [
        "{",
        "[]",
        "null",
        b"\x00",
        {"type": "nonsense"},
        {"no": "type"},
        {"type": "input.text", "text": None},
        {"type": "input.text", "text": 5},
        {"type": "input.text", "text": "x" * 130_000},
        {"type": "input.text", "text": "x" * 30_000},
        {"type": "session.config", "stream_audio": True, "response_format": "mp3"},
        '{"type": "input.text", "text": "' + "[" * 2000,
    ],
    ids=lambda x: str(x)[:50],
)
def test_a_wrong_message_is_an_error_and_the_session_goes_on(server, wrong):
    with session(server, STREAM, wrong) as client:
        assert client.get()["type"] == "error"
        client.text("one")
        client.done()
        assert shape(client.until("session.done")) == ["audio.start", "audio", "audio.done", "session.done"]


@pytest.mark.parametrize(
    ("wrong", "word"), [({"voice": "nobody"}, "toy"), ({"ref_audio": "http://10.0.0.1/"}, "only Base models")], ids=str
)
def test_what_only_a_sentence_can_tell_fails_the_sentence(server, wrong, word):
    with session(server, STREAM | wrong) as client:
        client.text("one")
        client.done()
        found = client.until("session.done")
        assert shape(found) == ["audio.start", "error", "audio.done", "session.done"]
        assert word in found[1]["message"]
        assert "partial_audio" not in found[1]
        assert found[2]["error"] is True


def test_an_answer_to_a_wrong_message_waits_for_its_turn():
    """As on the server, which reads the next message when it has answered the one before; a cancel does not lose it."""
    barrier = Barrier(at=2)
    with toy_voice(ToyTalker(5, on_step=barrier)) as voice, served(voice) as server, session(server, STREAM) as client:
        client.text("one")
        client.done()
        assert barrier.reached.wait(30)
        client.send("{")
        client.text("two")
        client.send({"type": "session.config"})
        client.done()
        barrier.go.set()
        kinds = shape([*client.until("session.done"), *client.until("session.done")])
        spoken = ["audio.start", "audio", "audio.done"]
        assert kinds == [*spoken, "session.done", "error", "error", *spoken, "session.done"]


def test_a_cancel_keeps_the_answers_to_wrong_messages():
    barrier = Barrier(at=2)
    with toy_voice(ToyTalker(5, on_step=barrier)) as voice, served(voice) as server, session(server, STREAM) as client:
        client.text("one")
        client.done()
        assert barrier.reached.wait(30)
        client.send("{", {"type": "input.cancel"})
        barrier.go.set()
        found = client.until("audio.cancelled")
        client.text("two")
        client.done()
        found += client.until("session.done")
        assert shape(found).count("error") == 1


def test_more_messages_than_may_wait_end_the_session():
    barrier = Barrier(at=0)
    with (
        toy_voice(ToyTalker(5, on_step=barrier)) as voice,
        served(voice, max_input_chars=50) as server,
        session(server, STREAM) as client,
    ):
        client.text("one")
        client.done()
        assert barrier.reached.wait(30)
        with suppress(ConnectionClosed):  # the server may close before the last of them is sent
            client.send(*["{"] * 60)
        barrier.go.set()
        assert client.closed() == 1008
        server.wait_idle()


def test_word_timestamps_are_refused_a_sentence_at_a_time(server):
    with session(server, SENTENCES | {"word_timestamps": True}) as client:
        client.text("One. Two.")
        client.done()
        found = client.until("session.done")
        assert shape(found) == ["error", "error", "session.done"]
        assert found[-1]["total_sentences"] == 2


def test_a_text_that_is_left_out_is_no_text(server):
    with session(server, STREAM) as client:
        client.send({"type": "input.text"}, {"type": "input.done"})
        assert client.get() == {"type": "session.done", "utterance_index": 0, "total_sentences": 0}


def test_a_failure_in_the_middle_says_so_and_the_next_sentence_is_spoken():
    with (
        toy_voice(ToyTalker(38), WideDecoder(poison_at=35)) as voice,
        served(voice) as server,
        session(server, SENTENCES) as client,
    ):
        client.text("One. ")
        client.done()
        found = client.until("session.done")
        assert shape(found) == ["audio.start", "audio", "error", "audio.done", "session.done"]
        assert (found[-3]["partial_audio"], found[-3]["action"]) == (True, "discard")
        assert found[-2]["total_bytes"] == len(audio(found))


def test_silence_ends_a_session():
    with toy_voice() as voice, served(voice, session_config_s=0.2, session_idle_s=0.3) as server, session(server) as client:
        assert "session.config" in client.get()["message"]
        assert client.closed() == 1008
        with session(server, STREAM) as client:
            assert client.get()["type"] == "error"
            assert client.closed() == 1008


def test_waiting_for_speech_is_not_silence():
    barrier = Barrier(at=2)
    with (
        toy_voice(ToyTalker(5, on_step=barrier)) as voice,
        served(voice, session_idle_s=0.2) as server,
        session(server, STREAM) as client,
    ):
        client.text("one")
        client.done()
        time.sleep(0.6)
        barrier.go.set()
        assert client.until("session.done")[-1]["total_sentences"] == 1
