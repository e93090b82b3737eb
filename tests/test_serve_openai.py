"""The `openai` package, unmodified, sync and async, against the embedded voice."""

from __future__ import annotations

import asyncio
import io
import json
import re
import statistics
import time
import wave
from pathlib import Path

import httpx
import openai
import pytest

from ouzel.audio.encoder import FORMATS
from serve_case import served, toy_voice
from toys import Barrier, ToyTalker

DOCS = Path(__file__).parents[1] / "docs" / "serve.md"
TEXT = "The dipper sings beside the stream."


@pytest.fixture(scope="module")
def server(embedded):
    with served(embedded, api_keys=("sk-local",)) as found:
        yield found


@pytest.fixture(scope="module")
def client(server) -> openai.OpenAI:
    with openai.OpenAI(base_url=server.url + "/v1", api_key="sk-local", max_retries=0) as found:
        yield found


@pytest.mark.parametrize("name", FORMATS)
def test_every_format(client, embedded, name):
    answer = client.audio.speech.create(
        model="tts-1", voice="alloy", input=TEXT, response_format=name, extra_body={"seed": 7, "language": "English"}
    )
    assert answer.response.headers["content-type"] == FORMATS[name].media_type
    assert len(answer.content) > 2000
    if name == "wav":
        with wave.open(io.BytesIO(answer.content)) as found:
            assert found.readframes(found.getnframes()) == embedded.say(TEXT, voice="fern", language="English", seed=7).pcm16()


def test_the_smallest_request_is_mp3(client):
    answer = client.audio.speech.create(model="gpt-4o-mini-tts", voice="ash", input="Hello.")
    assert answer.response.headers["content-type"] == "audio/mpeg"


def test_a_voice_by_id_and_a_speed(client, embedded):
    answer = client.audio.speech.create(
        model="tts-1-hd", voice={"id": "moss"}, input=TEXT, response_format="pcm", speed=1.25, extra_body={"seed": 7}
    )
    assert answer.content == embedded.say(TEXT, voice="moss", speed=1.25, seed=7).pcm16()


@pytest.mark.parametrize("name", ["pcm", "wav"])
def test_a_stream_of_bytes(client, embedded, name):
    create = client.audio.speech.with_streaming_response.create
    with create(model="tts-1", voice="fern", input=TEXT, response_format=name, extra_body={"seed": 7}) as answer:
        pieces = list(answer.iter_bytes())
    assert len(pieces) > 1
    assert b"".join(pieces)[44 if name == "wav" else 0 :] == embedded.say(TEXT, voice="fern", seed=7).pcm16()


def test_events(client):
    create = client.audio.speech.with_streaming_response.create
    with create(model="gpt-4o-mini-tts", voice="fern", input=TEXT, response_format="mp3", stream_format="sse") as answer:
        events = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: ")]
    assert events[0]["type"] == "speech.audio.delta"
    assert events[-1]["type"] == "speech.audio.done"
    assert events[-1]["usage"]["total_tokens"] > 0


def test_errors_are_the_clients_own(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.audio.speech.create(model="tts-1", voice="nobody", input=TEXT)
    assert caught.value.body["param"] == "voice"
    assert "fern, moss" in caught.value.body["message"]
    with pytest.raises(openai.NotFoundError):
        client.audio.speech.create(model="other", voice="fern", input=TEXT)
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="wrong").models.list()


def test_the_example_in_the_docs(embedded, tmp_path, monkeypatch):
    snippet = re.search(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)[1]
    monkeypatch.chdir(tmp_path)
    with served(embedded) as server:
        exec(compile(snippet.replace("http://127.0.0.1:8000", server.url), str(DOCS), "exec"), {})
    assert (tmp_path / "hello.mp3").stat().st_size > 2000


def test_models(client):
    assert [model.id for model in client.models.list()] == ["embedded"]


def test_a_busy_server_is_tried_again():
    barrier = Barrier(at=0)
    with toy_voice(ToyTalker(3, on_step=barrier)) as voice, served(voice, concurrency=1, queue=0) as server:

        async def two() -> tuple[bytes, bytes]:
            async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="none") as client:

                async def one() -> bytes:
                    answer = await client.audio.speech.create(
                        model="tts-1", voice="toy", input="one", response_format="pcm", extra_body={"seed": 1}
                    )
                    return answer.content

                first = asyncio.create_task(one())
                while not barrier.reached.is_set():
                    await asyncio.sleep(0.01)
                second = asyncio.create_task(one())
                while not server.desk.metrics.value("requests_refused_total"):
                    await asyncio.sleep(0.01)
                barrier.go.set()
                return await first, await second

        first, second = asyncio.run(two())
        assert first == second


def test_async_with_a_client_that_leaves(server):
    async def leave() -> None:
        async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="sk-local") as client:
            create = client.audio.speech.with_streaming_response.create
            async with create(model="tts-1", voice="fern", input=TEXT * 20, response_format="pcm") as answer:
                async for _ in answer.iter_bytes():
                    break

    asyncio.run(leave())
    print(f"from leaving to idle: {server.wait_idle() * 1000:.0f} ms")


def test_the_first_byte_is_close_behind_the_engine(server, embedded, monkeypatch):
    """Of the time to the first byte, what is not the engine's; the machine may be busy, so the bound is a loose one.

    The first chunk is long enough to have sound in it, since silence is held back.
    """
    behind, made = [], []
    speak = embedded.speak
    monkeypatch.setattr(embedded, "speak", lambda plan: made.append(speak(plan)) or made[-1])
    body = {"input": "Good morning.", "response_format": "pcm", "seed": 1, "initial_codec_chunk_frames": 4}
    with httpx.Client(headers={"authorization": "Bearer sk-local"}, timeout=60) as client:
        for _ in range(20):
            began = time.perf_counter()
            with client.stream("POST", server.url + "/v1/audio/speech", json=body) as answer:
                pieces = answer.iter_raw()
                next(pieces)
                first = time.perf_counter() - began
                for _ in pieces:
                    pass
            behind.append(first - made.pop().metrics.ttfa_s)
    median = statistics.median(behind)
    print(f"first byte behind the engine's first audio: median {median * 1000:.1f} ms, least {min(behind) * 1000:.1f} ms")
    assert min(behind) < 0.05
