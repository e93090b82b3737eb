"""Clients that leave, read slowly or come in crowds; the server's beginning and end. Afterwards nothing is left."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import statistics
import threading
import time

import httpx
import psutil
import pytest

from cli_run import address_in, start, until_ready
from ouzel.errors import OuzelError
from ouzel.serve.listening import bind
from serve_case import served, toy_voice
from test_serve_speech import error_of
from toys import Barrier, ToyTalker

PATH = "/v1/audio/speech"
ENDLESS = " ".join(["word"] * 300)  # 3,600 frames


def pcm(text: str = ENDLESS, **options) -> dict[str, object]:
    return {"input": text, "response_format": "pcm", "seed": 1, **options}


def open_request(url: str, body: bytes) -> socket.socket:
    """A client that reads what and when the test wants."""
    host, port = url.removeprefix("http://").split(":")
    client = socket.create_connection((host, int(port)))
    head = f"POST {PATH} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    client.sendall(head.encode() + body)
    return client


def body_of(**options) -> bytes:
    return json.dumps(pcm(**options)).encode()


# ---- leaving


@pytest.mark.parametrize("delivery", [{}, {"stream": True}, {"response_format": "wav"}, {"response_format": "mp3"}], ids=str)
def test_a_client_that_leaves_ends_its_speech(delivery):
    """After it has gone, at most the step and the decode call under way are finished."""
    talker = ToyTalker(3000)
    with toy_voice(talker) as voice, served(voice) as server:
        times = []
        for _ in range(10):
            before = talker.steps
            client = open_request(server.url, body_of(**delivery))
            while talker.steps - before < 20:
                time.sleep(0.001)
            client.close()
            times.append(server.wait_idle())
        assert len(talker.states) == 0
        assert server.desk.metrics.value("speech_stream_aborted_total", reason="cancelled") == 10
    print(f"from hanging up to idle: median {statistics.median(times) * 1000:.1f} ms, max {max(times) * 1000:.1f} ms")


def test_leaving_before_the_first_frame():
    barrier = Barrier(at=0)
    talker = ToyTalker(3000, on_prefill=barrier)
    with toy_voice(talker) as voice, served(voice) as server:
        client = open_request(server.url, body_of())
        assert barrier.reached.wait(30)
        client.close()
        deadline = time.monotonic() + 30
        while server.desk._admitted and time.monotonic() < deadline:
            time.sleep(0.002)
        barrier.go.set()
        server.wait_idle()
        assert talker.steps == 0


def test_leaving_while_waiting_for_a_turn():
    barrier = Barrier(at=0)
    talker = ToyTalker(5, on_step=barrier)
    with toy_voice(talker, max_active=1) as voice, served(voice) as server:
        first = open_request(server.url, body_of())
        assert barrier.reached.wait(30)
        second = open_request(server.url, body_of())
        while server.desk.live().waiting == 0:
            time.sleep(0.002)
        second.close()
        while server.desk.live().waiting:
            time.sleep(0.002)
        barrier.go.set()
        first.close()
        server.wait_idle()


# ---- reading slowly


def test_a_slow_reader_holds_back_its_own_speech_only():
    talker = ToyTalker(3000)
    with toy_voice(talker) as voice, served(voice) as server:
        slow = open_request(server.url, body_of())
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        steps = -1
        while steps != talker.steps:  # until the backpressure has reached the talker
            steps = talker.steps
            time.sleep(0.3)
        assert talker.steps < 2000
        alone = voice.say("another one", seed=2).pcm16()
        assert server.post(pcm("another one", seed=2)).content == alone
        slow.close()
        server.wait_idle()


def test_a_reader_that_stands_still_is_cut():
    talker = ToyTalker(3600)
    with toy_voice(talker) as voice, served(voice, write_stall_s=0.3) as server:
        client = open_request(server.url, body_of())
        assert client.recv(100)
        server.wait_idle()
        assert talker.steps < 3600
        client.close()


# ---- crowds


def test_eight_at_once_sound_as_each_does_alone(embedded):
    texts = [
        f"This is the sentence with number {word}." for word in ("one", "two", "three", "four", "five", "six", "seven", "eight")
    ]
    alone = [embedded.say(text, seed=i).pcm16() for i, text in enumerate(texts)]
    with served(embedded) as server:

        async def all_of_them() -> list[bytes]:
            async with httpx.AsyncClient(timeout=120) as client:
                answers = await asyncio.gather(
                    *(client.post(server.url + PATH, json=pcm(text, seed=i)) for i, text in enumerate(texts))
                )
            return [answer.content for answer in answers]

        assert asyncio.run(all_of_them()) == alone
        server.wait_idle()


def test_busy_is_429_with_a_time_to_wait():
    barrier = Barrier(at=0)
    with toy_voice(ToyTalker(5, on_step=barrier)) as voice, served(voice, concurrency=1, queue=1) as server:
        clients = [open_request(server.url, body_of(text="one")) for _ in range(2)]
        while server.desk._admitted < 2:
            time.sleep(0.002)
        answer = server.post(pcm("one"))
        error = error_of(answer, 429)
        assert error["type"] == "RateLimitError"
        assert 1 <= int(answer.headers["retry-after"]) <= 30
        barrier.go.set()
        server.wait_idle()
        assert server.post(pcm("one")).status_code == 200
        assert server.desk.metrics.value("requests_refused_total") == 1
        for client in clients:
            client.close()


def test_memory_stays_level(tmp_path):
    with toy_voice(ToyTalker(4)) as voice, served(voice) as server, httpx.Client() as client:
        formats = ("mp3", "opus", "aac", "flac", "wav", "pcm")

        def some(count: int) -> None:
            for i in range(count):
                client.post(server.url + PATH, json=pcm("one", response_format=formats[i % 6])).raise_for_status()

        some(60)
        before = psutil.Process().memory_info().rss
        some(500)
        grown = psutil.Process().memory_info().rss - before
        print(f"resident memory after 500 requests: {grown / 1e6:+.1f} MB")
        assert grown < 20e6
        server.wait_idle()


# ---- beginning and end


def test_while_it_loads():
    with served(None) as server:
        assert httpx.get(server.url + "/health").status_code == 200
        assert httpx.get(server.url + "/ready").json() == {"status": "loading"}
        answer = server.post(pcm("one"))
        assert error_of(answer, 503)["type"] == "ServiceUnavailableError"
        assert int(answer.headers["retry-after"]) > 0


def test_draining_ends_what_is_spoken_and_takes_nothing_new():
    barrier = Barrier(at=3)
    with toy_voice(ToyTalker(20, on_step=barrier)) as voice, served(voice) as server:
        answers = []
        client = threading.Thread(target=lambda: answers.append(server.post(pcm("one"))))
        client.start()
        assert barrier.reached.wait(30)
        server.call(server.desk.drain)
        assert httpx.get(server.url + "/ready").json() == {"status": "stopping"}
        error_of(server.post(pcm("one")), 503)
        barrier.go.set()
        client.join(30)
        assert len(answers[0].content) == 2 * 1920 * 20


def test_stopping_silences_what_is_spoken():
    barrier = Barrier(at=3)
    with toy_voice(ToyTalker(20, on_step=barrier)) as voice, served(voice) as server:
        answers = []
        client = threading.Thread(target=lambda: answers.append(server.post(pcm("one", stream=True, response_format="wav"))))
        client.start()
        assert barrier.reached.wait(30)
        server.call(server.desk.stop)
        barrier.go.set()
        client.join(30)
        assert answers[0].status_code == 503 or answers[0].text.rstrip().splitlines()[-2] == "event: speech.audio.error"
        server.wait_idle()


def test_a_taken_port_is_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OuzelError, match=r"Cannot listen on 127\.0\.0\.1:"):
        bind("127.0.0.1", taken.getsockname()[1])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_ends_cleanly(number, tmp_path):
    process = start("serve", "-m", "embedded", "--port", "0", "--threads", "1", home=tmp_path)
    lines = until_ready(process)
    assert [line.split()[1] for line in lines] == ["listening", "loading", "warming", "ready"]
    url = address_in(lines)
    answer = httpx.post(url + PATH, json={"input": "Some secret words.", "response_format": "pcm", "stream": True}, timeout=120)
    assert answer.text.rstrip().splitlines()[-2] == "event: speech.audio.done"
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out == b""
    log = err.decode()
    assert "Traceback" not in log
    assert "outcome=ok" in log
    assert "ttfa_ms=" in log
    assert "secret" not in log
