"""LiveKit's OpenAI plug-in, unmodified, against the embedded voice. It needs a venv of its own: make test-clients."""

from __future__ import annotations

import asyncio
import logging

import numpy as np
import pytest

from clients_case import page
from serve_case import served

pytest.importorskip("livekit.plugins.openai", reason="livekit-plugins-openai is not installed: make test-clients")

from livekit.agents import APIStatusError, tts
from livekit.plugins import openai

TEXT = "The dipper sings beside the stream."


@pytest.fixture(scope="module")
def server(embedded):
    with served(embedded) as found:
        yield found


def plugin(server, **options) -> openai.TTS:
    return openai.TTS(base_url=server.url + "/v1", api_key="none", **options)


def spoken(server, client: openai.TTS, text: str = TEXT) -> np.ndarray:
    """Samples, int16, of one text. The server is idle afterwards."""

    async def main() -> np.ndarray:
        async with client.synthesize(text) as stream:
            frames = [event.frame async for event in stream]
        await client.aclose()
        assert {(frame.sample_rate, frame.num_channels) for frame in frames} == {(24000, 1)}
        return np.concatenate([np.frombuffer(frame.data, np.int16) for frame in frames])

    found = asyncio.run(main())
    server.wait_idle()
    return found


def audible(samples: np.ndarray) -> bool:
    return float(np.sqrt(np.mean(np.square(samples / 32768.0)))) > 0.01


def test_the_page(server):
    samples = spoken(server, page("client-livekit.md", server.url)["tts"])
    assert 1.0 < len(samples) / 24000 < 6.0
    assert audible(samples)


@pytest.mark.parametrize("model", ["gpt-4o-mini-tts", "tts-1"])  # events and bytes
@pytest.mark.parametrize("name", ["mp3", "opus", "aac", "flac", "wav", "pcm"])
def test_every_format_arrives_whole(server, caplog, model, name):
    """As long as the server's account says. Packed formats come in packets, which are some milliseconds longer; of flac LiveKit's
    decoder loses a block of 96 ms, whoever made the file."""
    caplog.set_level(logging.INFO, "ouzel.serve")
    samples = spoken(server, plugin(server, model=model, response_format=name))
    assert audible(samples)
    account = caplog.records[-1].fields
    assert (account["format"], account["delivery"]) == (name, "audio" if model == "tts-1" else "sse")
    assert samples.size / 24000 == pytest.approx(account["audio_s"], abs=0.01 if name in ("wav", "pcm") else 0.1)


def test_all_of_its_defaults(server):
    assert audible(spoken(server, plugin(server)))


def test_a_stream_of_text(server):
    """As an agent speaks: the text comes word by word, the plug-in asks for each sentence."""

    async def main() -> tuple[list[str], int]:
        adapter = tts.StreamAdapter(tts=plugin(server, response_format="pcm"))
        segments, size = [], 0
        async with adapter.stream() as stream:
            for word in "Hello there. Dr. Smith paid $3.50 for it. How are you today?".split():
                stream.push_text(word + " ")
            stream.end_input()
            async for event in stream:
                segments.append(event.segment_id)
                size += event.frame.samples_per_channel
        await adapter.aclose()
        return segments, size

    segments, size = asyncio.run(main())
    assert segments
    assert size / 24000 > 2.0
    server.wait_idle()


def test_an_interrupted_agent_leaves_nothing_behind(server):
    async def main() -> None:
        client = plugin(server, response_format="pcm")
        stream = client.synthesize(" ".join([TEXT] * 20))
        await anext(aiter(stream))
        await stream.aclose()
        await client.aclose()

    asyncio.run(main())
    assert server.wait_idle() < 5


def test_an_error_is_one(server):
    with pytest.raises(APIStatusError) as caught:
        spoken(server, plugin(server, voice="nobody"))
    assert caught.value.status_code == 400
