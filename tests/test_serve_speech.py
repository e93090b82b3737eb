"""POST /v1/audio/speech: what is answered before the first audible block, after it, and to what cannot be honoured."""

from __future__ import annotations

import base64
import json

import httpx
import numpy as np
import pytest

from serve_case import WideDecoder, served, toy_voice
from toys import Barrier, Failing, ToyTalker

PATH = "/v1/audio/speech"


@pytest.fixture(scope="module")
def server():
    with toy_voice() as voice, served(voice) as found:
        yield found


@pytest.fixture(scope="module")
def omni():
    with toy_voice() as voice, served(voice, compat="vllm-omni") as found:
        yield found


def events(text: str) -> list[dict]:
    """The events of a stream; each has its name in the event line and in the data."""
    found = []
    for block in text.strip().split("\n\n"):
        name, data = block.split("\n")
        value = json.loads(data.removeprefix("data: "))
        assert name == f"event: {value['type']}"
        found.append(value)
    return found


def error_of(answer: httpx.Response, status: int) -> dict:
    assert answer.status_code == status, answer.text[:200]
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"]
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == status
    return error


# ---- events


@pytest.mark.parametrize("asked", [{"stream": True}, {"stream_format": "sse"}])
def test_events_carry_the_audio_and_end_with_the_usage(server, asked):
    answer = server.post({"input": "one two three", "seed": 1, "response_format": "pcm", **asked})
    assert answer.headers["content-type"].startswith("text/event-stream")
    *deltas, done = events(answer.text)
    assert {d["type"] for d in deltas} == {"speech.audio.delta"}
    assert {d["response_format"] for d in deltas} == {"pcm"}
    audio = b"".join(base64.b64decode(d["audio"]) for d in deltas)
    speech = server.desk.voice.say("one two three", seed=1)
    assert audio == speech.pcm16()
    assert done["type"] == "speech.audio.done"
    assert done["finish_reason"] == "stop"
    assert done["usage"]["input_tokens"] == 3
    assert done["usage"]["output_tokens"] == speech.metrics.frames + 1
    assert done["usage"]["total_tokens"] == 3 + speech.metrics.frames + 1


def test_a_wav_header_is_an_event_of_its_own(server):
    first, second, *_ = events(server.post({"input": "one", "response_format": "wav", "stream": True}).text)
    assert len(base64.b64decode(first["audio"])) == 44
    assert len(base64.b64decode(second["audio"])) > 44


def test_stream_format_wins_over_stream(server):
    answer = server.post({"input": "one", "response_format": "pcm", "stream": True, "stream_format": "audio"})
    assert answer.headers["content-type"] == "audio/pcm"


# ---- requests


def test_fields_reach_the_engine(server):
    server.post(
        {
            "input": "one",
            "speaker": "TOY".lower(),
            "language": "auto",
            "instructions": "",
            "max_new_tokens": 7,
            "seed": 5,
            "initial_codec_chunk_frames": 2,
            "non_streaming_mode": True,
            "extra_params": {"temperature": 0.5, "top_k": -1},
            "top_p": 0.5,
            "speed": 1,
            "task_type": "CustomVoice",
        }
    )
    found = server.desk.voice._frontend.requests[-1]
    assert (found.voice, found.language, found.instructions, found.max_new_tokens) == ("toy", "auto", None, 7)
    assert (found.seed, found.initial_codec_chunk_frames, found.non_streaming_mode) == (5, 2, True)
    assert (found.temperature, found.top_k, found.top_p, found.speed) == (0.5, 0, 0.5, 1)


@pytest.mark.parametrize("voice", ["toy", {"id": "toy"}, "default", None, "alloy", "Verse"])
def test_names_of_a_voice(server, voice):
    assert server.post({"input": "one", "voice": voice}).status_code == 200


def test_unknown_fields_are_named(server):
    answer = server.post({"input": "one", "zeta": 1, "alpha": {"x": [1]}})
    assert answer.status_code == 200
    assert answer.headers["x-warnings"] == "Unknown fields were left out: alpha, zeta."


def test_a_request_keeps_a_sane_id_of_its_own(server):
    kept = server.post({"input": "one"}, headers={"x-request-id": "my-1.2:3"})
    assert kept.headers["x-request-id"] == "my-1.2:3"
    made = server.post({"input": "one"}, headers={"x-request-id": "not sane"})
    assert made.headers["x-request-id"].startswith("req-")


@pytest.mark.parametrize(
    ("body", "status", "param", "words"),
    [
        ({"input": ""}, 400, "input", "empty"),
        ({"input": " \t\n "}, 400, "input", "empty"),
        ({"input": "…"}, 400, "input", "spoken"),
        ({"input": "# "}, 400, "input", ""),
        ({}, 400, "input", "required"),
        ({"input": 5}, 400, "input", "string"),
        ({"input": None}, 400, "input", "string"),
        ({"input": "x" * 20_001}, 400, "input", "20,000"),
        ({"input": "one", "voice": ""}, 400, "voice", "empty"),
        ({"input": "one", "voice": "nobody"}, 400, "voice", "toy"),
        ({"input": "one", "voice": 3}, 400, "voice.str", ""),
        ({"input": "one", "response_format": "ogg"}, 400, "response_format", "mp3, opus, aac, flac, wav, pcm"),
        ({"input": "one", "stream_format": "chunks"}, 400, "stream_format", "audio, sse"),
        ({"input": "one", "sample_rate": 16000}, 400, "sample_rate", "8000 or 24000"),
        ({"input": "one", "sample_rate": 0}, 400, "sample_rate", "8000 or 24000"),
        ({"input": "one", "speed": 9}, 400, "speed", "0.25"),
        ({"input": "one", "speed": "fast"}, 400, "speed", "number"),
        ({"input": "one", "max_new_tokens": 4097}, 400, "max_new_tokens", "4096"),
        ({"input": "one", "seed": 2**63}, 400, "seed", ""),
        ({"input": "one", "extra_params": {"heat": 1}}, 400, "extra_params", "temperature"),
        ({"input": "one", "word_timestamps": True}, 400, "word_timestamps", "aligner"),
        ({"input": "one", "ref_audio": "http://10.0.0.1/x.wav"}, 400, "ref_audio", "only Base models"),
        ({"input": "one", "references": [{"audio_path": "/etc/passwd"}]}, 400, "ref_audio", "only Base models"),
        ({"input": "one", "ref_audio": ["data:,", "data:,"]}, 400, "ref_audio", "one recording is taken, not 2"),
        ({"input": "one", "references": [{}, {}]}, 400, "references", "one recording is taken, not 2"),
        ({"input": "one", "references": [{"text": "x"}]}, 400, "references", "audio_path must be"),
        ({"input": "one", "references": [{"audio_path": 5}]}, 400, "references", "audio_path must be"),
        ({"input": "one", "references": [{"audio_path": "x", "text": 5}]}, 400, "references", "text must be"),
        ({"input": "one", "references": [{"audio_path": "x", "voice": "y"}]}, 400, "references", "audio_path, text"),
        ({"input": "one", "references": [{"audio_path": "x"}], "ref_audio": "y"}, 400, "references", "not both"),
        ({"input": "one", "references": [{"audio_path": "x", "text": "a"}], "ref_text": "b"}, 400, "ref_text", "one text"),
        ({"input": "one", "ref_audio": "data:,", "speaker_embedding": [0.5]}, 400, "speaker_embedding", "not both"),
        ({"input": "one", "ref_audio": "data:,", "task_type": "CustomVoice"}, 400, "ref_audio", "for task_type Base"),
        ({"input": "one", "x_vector_only_mode": True}, 400, "x_vector_only_mode", "only Base models"),
        ({"input": "one", "x_vector_only_mode": False}, 400, "x_vector_only_mode", "only Base models"),
        ({"input": "one", "speaker_embedding": [0.0] * 8193}, 400, "speaker_embedding", "8192"),
        ({"input": "one", "model": "another"}, 404, "model", "toy-model"),
        ([], 400, None, ""),
        ("text", 400, None, ""),
    ],
)
def test_what_cannot_be_honoured_is_an_error_about_its_field(server, body, status, param, words):
    error = error_of(server.post(body), status)
    assert error["param"] == param
    assert words in error["message"]
    assert error["type"] == ("BadRequestError" if status == 400 else "NotFoundError")


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff\xfe", b"{" * 100_000, b'{"input":"\\ud800"}', b'{"input": "one", "speed": NaN}']
)
def test_malformed_bodies(server, data: bytes):
    answer = httpx.post(server.url + PATH, content=data, headers={"content-type": "application/json"}, timeout=60)
    error_of(answer, 400)


def test_other_content_types_are_refused(server):
    """A web page can send text/plain anywhere without asking; JSON it cannot."""
    answer = httpx.post(server.url + PATH, content=b'{"input": "one"}', headers={"content-type": "text/plain"}, timeout=60)
    assert answer.status_code == 400


def test_wrong_routes_and_methods(server):
    error_of(httpx.get(server.url + "/v1/nothing"), 404)
    error_of(httpx.get(server.url + PATH), 405)


# ---- what goes wrong while it is spoken


@pytest.mark.parametrize("delivery", [{}, {"stream_format": "audio"}, {"stream": True}], ids=["default", "audio", "sse"])
@pytest.mark.parametrize(
    ("talker", "decoder", "words"),
    [
        ({"frames": 0}, {}, "frame"),
        ({"frames": 5}, {"silent": True}, "heard"),
        ({"frames": 40}, {"silent": True}, "silent"),
        ({"frames": 5}, {"poison_at": 0}, "non-finite"),
        ({"frames": 5, "on_prefill": Failing()}, {}, "broke down"),
    ],
    ids=["no frame", "short silence", "long silence", "not a number", "failure"],
)
def test_no_audible_block_no_200(talker, decoder, words, delivery):
    if "on_prefill" in talker:
        talker = {**talker, "on_prefill": Failing()}
    with toy_voice(ToyTalker(**talker), WideDecoder(**decoder)) as voice, served(voice) as server:
        error = error_of(server.post({"input": "one", "response_format": "pcm", **delivery}), 500)
        assert error["type"] == "InternalServerError"
        assert words in error["message"]
        server.wait_idle()
        assert server.desk.metrics.value("speech_stream_aborted_total", reason="error") == 1


def test_silence_before_the_first_word_is_delivered():
    """Held back until something can be heard, and then not lost."""

    class LateDecoder(WideDecoder):
        def _frame(self, state, codes):
            count = self._counts[state]
            samples = super()._frame(state, codes)
            return samples * np.float32(1e-5) if count < 3 else samples

    with toy_voice(ToyTalker(10), LateDecoder()) as voice, served(voice) as server:
        answer = server.post({"input": "one", "response_format": "pcm", "seed": 1})
        assert len(answer.content) == 2 * 10 * 1920


def test_an_error_in_the_middle_of_events_is_an_event():
    with toy_voice(ToyTalker(38), WideDecoder(poison_at=35)) as voice, served(voice) as server:
        *deltas, last = events(server.post({"input": "one", "response_format": "mp3", "stream": True}).text)
        assert deltas
        assert {d["type"] for d in deltas} == {"speech.audio.delta"}
        assert last["type"] == "speech.audio.error"
        assert last["error"]["type"] == "server_error"
        assert (last["error"]["code"], last["error"]["partial_audio"], last["error"]["action"]) == (500, True, "discard")
        assert "non-finite" in last["error"]["message"]


def test_an_error_in_the_middle_of_bytes_ends_the_connection_early():
    with toy_voice(ToyTalker(38), WideDecoder(poison_at=35)) as voice, served(voice) as server:
        with pytest.raises(httpx.RemoteProtocolError):
            server.post({"input": "one", "response_format": "pcm"})
        server.wait_idle()


def test_an_error_in_the_middle_of_a_whole_answer_is_a_json_error():
    with toy_voice(ToyTalker(38), WideDecoder(poison_at=35)) as voice, served(voice) as server:
        error_of(server.post({"input": "one", "response_format": "wav"}), 500)


def test_an_error_of_ours_says_nothing_about_itself(monkeypatch):
    with toy_voice() as voice, served(voice) as server:
        monkeypatch.setattr(voice, "plan", Failing(error=KeyError("secret")))
        error = error_of(server.post({"input": "one"}), 500)
        assert "secret" not in error["message"]


def test_synthesis_timeout():
    barrier = Barrier(at=0)
    with toy_voice(ToyTalker(5, on_step=barrier)) as voice, served(voice, synthesis_timeout_s=0.2) as server:
        error = error_of(server.post({"input": "one"}), 500)
        assert "0.2 s" in error["message"]
        barrier.go.set()
        server.wait_idle()


# ---- vLLM-Omni's defaults


def test_vllm_defaults_to_a_whole_wav(omni):
    answer = omni.post({"input": "one two", "model": "toy-model"})
    assert answer.headers["content-type"] == "audio/wav"
    assert answer.headers["content-length"] == str(len(answer.content))
    assert answer.headers["x-vllm-omni-input-tokens"] == "2"
    assert int(answer.headers["x-vllm-omni-total-tokens"]) == 2 + int(answer.headers["x-vllm-omni-output-tokens"])


@pytest.mark.parametrize("name", ["mp3", "opus", "flac", "aac"])
def test_vllm_answers_packed_formats_whole_and_streams_none(omni, name):
    assert omni.post({"input": "one", "response_format": name}).status_code == 200
    error = error_of(omni.post({"input": "one", "response_format": name, "stream": True}), 400)
    assert error["param"] == "response_format"


@pytest.mark.parametrize("options", [{}, {"stream": True}, {"sample_rate": 8000}])
def test_a_model_without_a_pace_is_stretched(server, options):
    body = {"input": "one two three", "response_format": "pcm", "seed": 1, "stream_format": "audio", **options}
    plain, slow = (server.post(body | {"speed": speed}).content for speed in (1, 0.5))
    assert len(plain) > 0
    assert len(slow) == 2 * len(plain)
    assert server.desk.voice._frontend.requests[-1].speed is None


def test_vllm_streams_at_speed_one_only(omni):
    error = error_of(omni.post({"input": "one", "response_format": "pcm", "stream": True, "speed": 1.5}), 400)
    assert error["param"] == "speed"


def test_vllm_knows_its_model_only(omni):
    error_of(omni.post({"input": "one", "model": "tts-1"}), 404)


def test_vllm_lists_voices_as_names(omni):
    assert httpx.get(omni.url + "/v1/audio/voices").json() == {"voices": ["default", "toy"], "uploaded_voices": []}


# ---- batch


def test_a_batch_speaks_its_items_and_tells_which_failed(server):
    body = {"voice": "toy", "items": [{"input": "one", "seed": 1}, {"input": ""}, {"input": "two", "response_format": "mp3"}]}
    answer = server.post(body, PATH + "/batch").json()
    assert (answer["total"], answer["succeeded"], answer["failed"]) == (3, 2, 1)
    first, second, third = answer["results"]
    assert first["media_type"] == "audio/wav"
    assert base64.b64decode(first["audio_data"])[44:] == server.desk.voice.say("one", seed=1).pcm16()
    assert second == {"index": 1, "status": "error", "error": "Input text cannot be empty."}
    assert third["media_type"] == "audio/mpeg"
    assert first["usage"]["input_tokens"] == 1


@pytest.mark.parametrize("count", [0, 33])
def test_a_batch_is_bounded(server, count):
    error = error_of(server.post({"items": [{"input": "one"}] * count}, PATH + "/batch"), 400)
    assert error["param"] == "items"
