"""Every format, whole and streamed: decoded by libraries that are not ours, to the full duration and the right sound."""

from __future__ import annotations

import io
import wave

import av
import httpx
import numpy as np
import pytest
import soundfile

from ouzel.audio.encoder import FORMATS
from serve_case import served, toy_voice
from toys import Barrier, ToyTalker

TEXT = "a sentence of some length for the toy"
PADDING = {"mp3": 2400, "aac": 2400}  # samples a decoder may give besides: what these formats begin and end with
STREAMED = {"stream_format": "audio"}


def body(name: str, **options) -> dict[str, object]:
    return {"input": TEXT, "voice": "toy", "seed": 3, "response_format": name, **options}


@pytest.fixture(scope="module")
def server():
    with toy_voice() as voice, served(voice) as found:
        yield found


@pytest.fixture(scope="module")
def expected(server) -> np.ndarray:
    """s16 samples, from the Python interface."""
    return np.frombuffer(server.desk.voice.say(TEXT, voice="toy", seed=3).pcm16(), "<i2")


def decoded(data: bytes) -> np.ndarray:
    """float32 samples by FFmpeg."""
    with av.open(io.BytesIO(data)) as container:
        resampler = av.AudioResampler(format="flt", layout="mono", rate=24000)
        frames = [out for frame in container.decode(audio=0) for out in resampler.resample(frame)]
        frames += resampler.resample(None)
    return np.concatenate([frame.to_ndarray()[0] for frame in frames])


@pytest.mark.parametrize("streamed", [False, True], ids=["default", "streamed"])
@pytest.mark.parametrize("name", FORMATS)
def test_decodes_to_the_full_duration(server, expected, name: str, streamed: bool):
    answer = server.post(body(name, **(STREAMED if streamed else {})))
    assert answer.status_code == 200
    assert answer.headers["content-type"] == FORMATS[name].media_type
    assert answer.headers["x-sample-rate"] == "24000"
    if name == "pcm":
        assert answer.content == expected.tobytes()
        return
    samples = decoded(answer.content)
    surplus = len(samples) - len(expected)
    assert 0 <= surplus <= PADDING.get(name, 0)
    if name in ("wav", "flac"):
        assert np.array_equal(np.rint(samples * 32768).astype(np.int16), expected)
    else:
        assert_same_sound(samples, expected / 32768)


def assert_same_sound(found: np.ndarray, original: np.ndarray) -> None:
    """Lossy coding keeps the loudness of every stretch of 80 ms, once the codec's delay is taken off."""
    best = max(range(0, len(found) - len(original) + 1, 24), key=lambda at: float(found[at : at + len(original)] @ original))
    window = found[best : best + len(original)][: len(original) // 1920 * 1920]
    loud = [np.sqrt(np.mean(np.square(x[: len(window)].reshape(-1, 1920)), axis=1)) for x in (window, original)]
    assert np.corrcoef(*loud)[0, 1] > 0.9


def test_a_whole_wav_has_its_true_sizes(server, expected):
    answer = server.post(body("wav"))
    assert answer.headers["content-length"] == str(44 + 2 * len(expected))
    assert answer.headers["x-finish-reason"] == "stop"
    with wave.open(io.BytesIO(answer.content)) as found:
        assert (found.getnframes(), found.getframerate(), found.getnchannels()) == (len(expected), 24000, 1)


def test_a_streamed_wav_says_that_it_does_not_know(server):
    data = server.post(body("wav", **STREAMED)).content
    assert data[4:8] == data[40:44] == b"\xff\xff\xff\xff"
    assert data.count(b"RIFF") == 1


@pytest.mark.parametrize("name", ["mp3", "opus", "flac", "wav"])
def test_soundfile_reads_the_default_answer(server, expected, name: str):
    samples, rate = soundfile.read(io.BytesIO(server.post(body(name)).content))
    assert rate == 24000
    assert 0 <= len(samples) - len(expected) <= PADDING.get(name, 0)


@pytest.mark.parametrize("name", FORMATS)
def test_eight_kilohertz(server, expected, name: str):
    answer = server.post(body(name, sample_rate=8000, **STREAMED))
    assert answer.headers["x-sample-rate"] == "8000"
    if name == "pcm":
        assert len(answer.content) == 2 * len(expected) // 3
    elif name != "opus":  # which always says 48000
        with av.open(io.BytesIO(answer.content)) as container:
            assert container.streams.audio[0].rate == 8000


@pytest.mark.parametrize("name", FORMATS)
def test_bytes_come_while_the_speech_is_made(name: str):
    """The talker stands still in the middle of the text, and the listener has audio."""
    barrier = Barrier(at=30)
    with toy_voice(ToyTalker(60, on_step=barrier)) as voice, served(voice) as server:
        address = server.url + "/v1/audio/speech"
        with httpx.stream("POST", address, json=body(name, **STREAMED), timeout=60) as answer:
            pieces = answer.iter_raw()
            assert next(pieces)
            barrier.go.set()
            assert sum(map(len, pieces)) > 0
