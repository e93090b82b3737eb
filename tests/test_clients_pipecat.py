"""Pipecat's OpenAI text-to-speech, unmodified, against the embedded voice. It needs a venv of its own: make test-clients."""

from __future__ import annotations

import asyncio
import re

import httpx
import numpy as np
import pytest

from clients_case import DOCS, page
from serve_case import served

pytest.importorskip("pipecat.services.openai.tts", reason="pipecat-ai[openai] is not installed: make test-clients")

from pipecat.frames.frames import (
    ErrorFrame,
    Frame,
    TTSAudioRawFrame,
    TTSSpeakFrame,
    TTSStartedFrame,
    TTSStoppedFrame,
)
from pipecat.services.openai.tts import VALID_VOICES, OpenAITTSService
from pipecat.tests.utils import run_test


@pytest.fixture(scope="module")
def server(embedded):
    with served(embedded, voice_aliases={"ash": "moss"}) as found:
        yield found


def service(server, voice: str = "ash") -> OpenAITTSService:
    return OpenAITTSService(base_url=server.url + "/v1", api_key="none", settings=OpenAITTSService.Settings(voice=voice))


def through(processor: OpenAITTSService, *texts: str) -> tuple[list[Frame], list[Frame]]:
    """Frames that leave a pipeline with `processor` in it, downstream and upstream."""
    sent = [TTSSpeakFrame(text) for text in texts]
    down, up = asyncio.run(run_test(processor, frames_to_send=sent, start_timeout=60))
    return list(down), list(up)


def samples_of(frames: list[Frame]) -> np.ndarray:
    found = [frame for frame in frames if isinstance(frame, TTSAudioRawFrame)]
    assert {(frame.sample_rate, frame.num_channels) for frame in found} == {(24000, 1)}
    return np.concatenate([np.frombuffer(frame.audio, np.int16) for frame in found])


def test_the_page(server):
    down, up = through(page("client-pipecat.md", server.url)["tts"], "The dipper sings beside the stream.", "It is small.")
    assert not [frame for frame in (*down, *up) if isinstance(frame, ErrorFrame)]
    samples = samples_of(down)
    assert 1.5 < len(samples) / 24000 < 9.0
    assert float(np.sqrt(np.mean(np.square(samples / 32768.0)))) > 0.01
    kinds = [type(frame) for frame in down]
    assert kinds.count(TTSStartedFrame) == kinds.count(TTSStoppedFrame) >= 1
    server.wait_idle()


def test_text_as_language_models_write_it(server):
    down, up = through(service(server), "**Bold** and `code` 😀 ok?")
    assert not [frame for frame in (*down, *up) if isinstance(frame, ErrorFrame)]
    assert samples_of(down).size


def test_a_voice_that_it_does_not_know_never_reaches_the_server(server):
    """Which is why OpenAI's names are dealt out."""
    down, up = through(service(server, "moss"), "Hello.")
    errors = [frame for frame in (*down, *up) if isinstance(frame, ErrorFrame)]
    assert errors
    assert "must be one of" in errors[0].error


def test_every_voice_that_it_knows_is_one_here(server):
    known = {voice["id"] for voice in httpx.get(server.url + "/v1/audio/voices").json()["voices"]}
    assert set(VALID_VOICES) <= known
    listed = re.search(r"every name but OpenAI's: (.*?)\.\s`", (DOCS / "client-pipecat.md").read_text(), re.DOTALL)[1]
    assert re.split(r",\s+", listed) == sorted(VALID_VOICES)
