"""The server speaks with the voice of a recording: from the request to the audio, on a random Base bundle."""

from __future__ import annotations

import base64
import logging
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
import soundfile

import ouzel
from bundles import converted
from conftest import cached_checkpoint
from ouzel.audio.media import decode
from recording_case import packed, uri, voice_like, wav
from recording_site import Site
from serve_case import Served, served
from test_serve_speech import error_of, events
from websocket_case import audio, session, shape

SAID = "This was said."
FEW = {"seed": 1, "max_new_tokens": 6, "response_format": "pcm"}
ASKED = {"input": "Hello.", **FEW}
ONLY_SOUND = {"x_vector_only_mode": True}


@pytest.fixture(scope="module")
def voice() -> Iterator[ouzel.Voice]:
    bundle = converted(cached_checkpoint("nano", "base", encoders=True))
    with ouzel.load(bundle, schedule="fixed:4", stuck=False, threads=1, warm_up=False) as found:
        yield found


@pytest.fixture(scope="module")
def server(voice) -> Iterator[Served]:
    with served(voice) as found:
        yield found
        found.wait_idle()


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    found = Site(body=wav(1.2))
    yield found
    found.end()


@pytest.fixture(scope="module")
def open_server(voice, site, tmp_path_factory) -> Iterator[Served]:
    """Fetches from the site, and reads below a directory."""
    folder = tmp_path_factory.mktemp("media")
    (folder / "one.wav").write_bytes(wav(1.2))
    settings = {"allow_remote_audio": True, "private_audio_hosts": (f"127.0.0.1:{site.port}",)}
    with served(voice, **settings, allowed_local_media_path=str(folder)) as found:
        yield found
        found.wait_idle()


def expected(voice: ouzel.Voice, data: bytes, text: str | None = None, say: str = "Hello.") -> bytes:
    """What the engine says when it is asked without a server."""
    found = decode(data, threading.Event())
    reference = voice.reference(found.samples, text, sample_rate=found.sample_rate)
    return voice.say(say, **reference.options(), seed=1, max_new_tokens=6).pcm16()


# ---- what is said


def test_the_sound_of_a_recording(server, voice):
    answer = server.post({**ASKED, **ONLY_SOUND, "ref_audio": uri(wav())})
    assert answer.status_code == 200, answer.text
    assert answer.content == expected(voice, wav())
    other = server.post({**ASKED, **ONLY_SOUND, "ref_audio": uri(wav(2.0))})
    assert other.content != answer.content


def test_in_the_manner_of_a_recording(server, voice):
    body = {**ASKED, "ref_audio": uri(wav()), "ref_text": SAID}
    whole = server.post(body)
    assert whole.content == expected(voice, wav(), SAID) != expected(voice, wav())
    *_, done = events(server.post(body | {"stream": True}).text)
    assert done["usage"]["input_token_details"]["audio_tokens"] == 19  # 1.5 s at 12.5 Hz
    assert done["usage"]["input_tokens"] == 19 + done["usage"]["input_token_details"]["text_tokens"]


@pytest.mark.parametrize(
    "change",
    [
        {"ref_audio": [uri(wav())]},
        {"references": [{"audio_path": uri(wav()), "text": SAID}], "ref_text": None},
        {"references": [{"audio_path": uri(wav())}]},
        {"references": [{"audio_path": uri(wav()), "text": SAID}], "ref_audio": uri(wav())},
        {"ref_audio": uri(wav()), "voice": "nobody"},
        {"ref_audio": uri(wav()), "voice": "alloy", "task_type": "base", "x_vector_only_mode": False},
        {"ref_audio": uri(wav()), "references": []},
    ],
    ids=["list", "references", "text beside", "both the same", "label", "explicit", "no references"],
)
def test_other_ways_to_say_so(server, voice, change):
    answer = server.post({**ASKED, "ref_text": SAID, **change})
    assert answer.status_code == 200, answer.text
    assert answer.content == expected(voice, wav(), SAID)


@pytest.mark.parametrize("kind", ["MP3", "FLAC", "OGG"])
def test_a_packed_recording(server, voice, kind):
    data = packed(voice_like(1.5, 44_100), 44_100, kind)
    answer = server.post({**ASKED, **ONLY_SOUND, "ref_audio": uri(data, "audio/x-whatever")})
    assert answer.content == expected(voice, data)


def test_a_text_that_is_not_needed_is_left_out_and_named(server, voice):
    answer = server.post({**ASKED, **ONLY_SOUND, "ref_audio": uri(wav()), "ref_text": SAID})
    assert answer.content == expected(voice, wav())
    assert "ref_text was left out" in answer.headers["x-warnings"]
    vector = voice.reference(voice_like().astype(np.float32)).speaker_embedding.tolist()
    answer = server.post({**ASKED, "speaker_embedding": vector, "ref_text": SAID})
    assert answer.status_code == 200
    assert "ref_text was left out" in answer.headers["x-warnings"]


def test_the_snippet_of_the_docs(server, tmp_path, monkeypatch):
    page = (Path(__file__).parents[1] / "docs" / "serve.md").read_text(encoding="utf-8")
    (snippet,) = [found for found in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "ref_audio" in found]
    (tmp_path / "my-voice.wav").write_bytes(wav())
    monkeypatch.chdir(tmp_path)
    snippet = snippet.replace("http://127.0.0.1:8000", server.url)
    snippet = snippet.replace("extra_body={", 'extra_body={"max_new_tokens": 6, ')  # random weights do not end by themselves
    exec(compile(snippet, "serve.md", "exec"), {"__name__": "snippet"})
    samples, rate = soundfile.read("morning.wav")
    assert rate == 24_000
    assert len(samples) == 5 * 1920


def test_eight_at_once_do_not_mix(server, voice):
    recordings = [wav(1.0 + 0.1 * n) for n in range(8)]
    found: dict[int, bytes] = {}

    def ask(n: int) -> None:
        text = {"ref_text": SAID} if n % 2 else ONLY_SOUND
        found[n] = server.post({**ASKED, **text, "ref_audio": uri(recordings[n])}).content

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n, data in enumerate(recordings):
        assert found[n] == expected(voice, data, SAID if n % 2 else None)


# ---- what is refused


@pytest.mark.parametrize(
    ("change", "param", "words"),
    [
        ({}, "ref_text", "x_vector_only_mode: true"),
        ({"ref_text": " \n"}, "ref_text", "x_vector_only_mode: true"),
        ({"ref_text": SAID, "task_type": "CustomVoice"}, "ref_audio", "for task_type Base"),
        ({"ref_text": SAID, "task_type": "nonsense"}, "ref_audio", "for task_type Base"),
        ({"ref_text": SAID, "speaker_embedding": [0.5] * 64}, "speaker_embedding", "not both"),
        ({"ref_text": SAID, "ref_audio": "data:audio/wav;base64,AAAA"}, "ref_audio", "no audio file"),
        ({"ref_text": SAID, "ref_audio": uri(wav(0.5))}, "ref_audio", "from 1 to 30 s"),
        ({"ref_text": SAID, "ref_audio": uri(packed(np.zeros(36_000), 24_000, "WAV"))}, "ref_audio", "silent"),
        ({"ref_text": SAID, "ref_audio": "http://127.0.0.1/x.wav"}, "ref_audio", "--allow-remote-audio"),
        ({"ref_text": SAID, "ref_audio": "file:///etc/passwd"}, "ref_audio", "--allowed-local-media-path"),
        ({"ref_text": SAID, "ref_audio": None}, "speaker_embedding", "ref_audio"),
        ({"x_vector_only_mode": True, "ref_audio": None}, "speaker_embedding", "ref_audio"),
    ],
)
def test_what_cannot_be_done_is_an_error_about_its_field(server, change, param, words):
    error = error_of(server.post({**ASKED, "ref_audio": uri(wav()), **change}), 400)
    assert error["param"] == param
    assert words in error["message"]


@pytest.mark.parametrize("delivery", [{}, {"stream": True}, {"stream_format": "audio"}], ids=["whole", "events", "bytes"])
def test_a_broken_recording_is_told_before_any_audio(server, delivery):
    broken = {"ref_audio": uri(b"RIFF"), "ref_text": SAID}
    assert "no audio file" in error_of(server.post({**ASKED, **broken, **delivery}), 400)["message"]


def test_a_body_that_is_too_large_names_the_flag(voice):
    with served(voice, max_body_bytes=50_000) as small:
        error = error_of(small.post({**ASKED, **ONLY_SOUND, "ref_audio": uri(wav())}), 413)
        assert "--max-body-mib" in error["message"]


# ---- from elsewhere


def test_a_recording_is_fetched(open_server, voice, site):
    answer = open_server.post({**ASKED, **ONLY_SOUND, "ref_audio": f"{site.url}/to?url=/ok"})
    assert answer.content == expected(voice, wav(1.2))


def test_a_recording_is_read_below_the_directory(open_server, voice):
    for change in ({"ref_audio": "file:one.wav"}, {"references": [{"audio_path": "one.wav"}]}):
        answer = open_server.post({**ASKED, **ONLY_SOUND, **change})
        assert answer.content == expected(voice, wav(1.2)), answer.text
    error = error_of(open_server.post({**ASKED, **ONLY_SOUND, "references": [{"audio_path": "/etc/passwd"}]}), 400)
    assert "not below" in error["message"]


def test_without_the_word_of_the_operator_this_machine_is_not_called(voice, site):
    with served(voice, allow_remote_audio=True) as public:
        before = len(site.seen)
        for host in ("127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"):
            body = {**ASKED, **ONLY_SOUND, "ref_audio": f"http://{host}:{site.port}/ok"}
            assert error_of(public.post(body), 400)["param"] == "ref_audio"
        assert len(site.seen) == before
        public.wait_idle()


@pytest.mark.parametrize(("path", "words"), [("/missing", "404"), ("/short", "whole"), ("/chunked", "no audio file")])
def test_what_goes_wrong_there(open_server, site, path, words):
    error = error_of(open_server.post({**ASKED, **ONLY_SOUND, "ref_audio": site.url + path}), 400)
    assert words in error["message"]


# ---- several texts


def test_a_session_reads_it_once(open_server, voice, site):
    config = {"type": "session.config", "stream_audio": True, "split_granularity": "sentence", **FEW}
    asked = {**config, "ref_audio": site.url + "/ok", "ref_text": SAID}
    before = len(site.seen)
    with session(open_server, asked) as client:
        client.text("Hello. And again. ")
        client.done()
        found = client.until("session.done")
        assert shape(found) == ["audio.start", "audio", "audio.done", "audio.start", "audio", "audio.done", "session.done"]
        assert len(site.seen) == before + 1
        hello = expected(voice, wav(1.2), SAID)
        assert audio(found)[: len(hello)] == hello
        # A recording of another place fails its sentence, and the session goes on.
        client.send(asked | {"ref_audio": site.url + "/missing"})
        client.text("Hello.")
        client.done()
        found = client.until("session.done")
        assert shape(found) == ["audio.start", "error", "audio.done", "session.done"]
        assert "404" in found[1]["message"]
        client.send({**config, **ONLY_SOUND, "ref_audio": uri(wav())})
        client.text("Hello.")
        client.done()
        assert audio(client.until("session.done")) == expected(voice, wav())


def test_a_batch_reads_it_once(open_server, voice, site):
    before = len(site.seen)
    shared = {"response_format": "pcm", "max_new_tokens": 6, "ref_audio": site.url + "/ok", "ref_text": SAID}
    items = [{"input": "Hello."}, {"input": "Hello."}, {"input": "Hello.", "ref_text": ""}]
    answer = open_server.post({**shared, "items": [item | {"seed": 1} for item in items]}, "/v1/audio/speech/batch").json()
    assert [result["status"] for result in answer["results"]] == ["success", "success", "error"]
    assert "x_vector_only_mode" in answer["results"][2]["error"]
    assert base64.b64decode(answer["results"][1]["audio_data"]) == expected(voice, wav(1.2), SAID)
    assert len(site.seen) == before + 1


# ---- clients that leave, and the others


def hang_up(server: Served, body: dict, reached: threading.Event | None = None) -> None:
    """Send a request and leave once `reached` is set, or the server has begun with it."""
    host, port = server.url.removeprefix("http://").split(":")
    data = httpx.Request("POST", server.url, json=body).content
    with socket.create_connection((host, int(port))) as client:
        head = f"POST /v1/audio/speech HTTP/1.1\r\nhost: {host}\r\ncontent-length: {len(data)}\r\n"
        head += "content-type: application/json\r\n\r\n"
        client.sendall(head.encode() + data)
        if reached is None:
            wait_until(lambda: not server.desk.idle)
        else:
            assert reached.wait(30)


def wait_until(true) -> None:
    ready = threading.Event()
    for _ in range(6000):
        if true():
            return
        ready.wait(0.005)
    raise AssertionError("it did not happen within 30 s")


@pytest.mark.parametrize("path", ["/slow", "/endless"])
def test_a_client_that_leaves_ends_the_fetching(open_server, site, path):
    for _ in range(3):
        hang_up(open_server, {**ASKED, **ONLY_SOUND, "ref_audio": site.url + path})
        open_server.wait_idle()
    # A name is looked up in a thread that nobody can interrupt: it ends by itself, a moment after its client.
    wait_until(lambda: not any(thread.name == "ouzel-lookup" for thread in threading.enumerate()))
    assert open_server.post({**ASKED, **ONLY_SOUND, "ref_audio": site.url + "/ok"}).status_code == 200


@pytest.mark.parametrize("how", ["close", "cancel"])
def test_a_session_that_leaves_ends_the_fetching(open_server, site, how):
    config = {"type": "session.config", **FEW, **ONLY_SOUND, "ref_audio": site.url + "/slow"}
    before = len(site.seen)
    with session(open_server, config) as client:
        client.text("Hello.")
        client.done()
        wait_until(lambda: len(site.seen) > before)
        if how == "cancel":
            client.send({"type": "input.cancel"})
            assert client.until("audio.cancelled")[-1]["reason"] == "client_cancel"
            open_server.wait_idle()
            client.send(config | {"ref_audio": site.url + "/ok"})
            client.text("Hello.")
            client.done()
            assert shape(client.until("session.done")) == ["audio.start", "audio", "audio.done", "session.done"]
    open_server.wait_idle()


def test_a_voice_in_the_making_keeps_nobody_waiting(server, voice, monkeypatch):
    """It is made in a thread; who leaves meanwhile is not waited for, and what is left of the work is counted until it ends."""
    reached, go = threading.Event(), threading.Event()
    make = voice.reference

    def slow(*args, **options):
        reached.set()
        assert go.wait(30)
        return make(*args, **options)

    vector = make(voice_like().astype(np.float32)).speaker_embedding.tolist()
    monkeypatch.setattr(voice, "reference", slow)
    try:
        hang_up(server, {**ASKED, **ONLY_SOUND, "ref_audio": uri(wav())}, reached)
        wait_until(lambda: server.desk._admitted == 0)
        assert not server.desk.idle
        assert server.post({**ASKED, "speaker_embedding": vector}).status_code == 200
        assert httpx.get(server.url + "/health").status_code == 200
    finally:
        go.set()
    server.wait_idle()


def test_the_log_says_how_long_it_took_and_not_what_it_was(open_server, site, caplog):
    caplog.set_level(logging.DEBUG, logger="ouzel")
    open_server.post({**ASKED, "ref_audio": site.url + "/ok?secret-token", "ref_text": "secret words"})
    open_server.post({**ASKED, "ref_audio": site.url + "/missing?secret-token", "ref_text": "secret words"})
    open_server.wait_idle()
    assert "outcome=ok" in caplog.text
    assert "reference_ms=" in caplog.text
    assert "outcome=error:400" in caplog.text
    assert "secret" not in caplog.text
