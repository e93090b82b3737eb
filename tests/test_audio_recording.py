"""Recordings: every kind of WAV, other formats where `av` is there, and what no voice can be taken from."""

from __future__ import annotations

import io
import struct
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal
from scipy.io import wavfile

from ouzel.audio import recording
from ouzel.audio.container import ContainerEncoder
from ouzel.audio.recording import check_recording, decode, read_recording
from ouzel.audio.resample import resample
from ouzel.audio.wav import wav_bytes, wav_header
from ouzel.errors import MissingExtraError, UsageError

RATE = 16_000


def tone(seconds: float = 1.5, rate: int = RATE) -> np.ndarray:
    return (0.4 * np.sin(2 * np.pi * 300 * np.arange(int(seconds * rate)) / rate)).astype(np.float32)


def written(values: np.ndarray, rate: int = RATE) -> bytes:
    file = io.BytesIO()
    wavfile.write(file, rate, values)
    return file.getvalue()


def refused(data: bytes, *words: str) -> None:
    with pytest.raises(UsageError) as caught:
        decode(data)
    assert caught.value.param == "ref_audio"
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("kind", ["u1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("channels", [1, 2])
def test_wav_of_every_kind(kind, channels):
    clean = tone()
    full = {"u1": 127, "i2": 32767, "i4": 2**31 - 1}.get(kind, 1)
    values = clean[:, None] * np.linspace(1, 0.5, channels) * full + (128 if kind == "u1" else 0)
    found, rate = decode(written(np.squeeze(values.astype(kind))))
    assert rate == RATE
    assert found.dtype == np.float32
    expected = clean if channels == 1 else 0.75 * clean
    np.testing.assert_allclose(found, expected, atol=2e-2 if kind == "u1" else 1e-4)


def test_wav_of_24_bits_with_an_extensible_header_and_other_chunks():
    clean = tone()
    steps = np.round(clean * 2**23).astype("<i4")
    body = steps[:, None].view(np.uint8)[:, :3].tobytes()
    form = struct.pack("<HHIIHHHHIH14x", 0xFFFE, 1, RATE, 3 * RATE, 3, 24, 22, 24, 0, 1)
    chunks = [(b"LIST", b"odd"), (b"fmt ", form), (b"data", body)]
    data = b"".join(name + struct.pack("<I", len(part)) + part + b"\0" * (len(part) % 2) for name, part in chunks)
    found, rate = decode(b"RIFF" + struct.pack("<I", len(data) + 4) + b"WAVE" + data)
    assert rate == RATE
    np.testing.assert_allclose(found, clean, atol=1e-6)


def test_a_stream_without_true_sizes_is_read_to_its_end():
    pcm = wav_bytes(tone(), RATE)[44:]
    found, _ = decode(wav_header(RATE, None) + pcm)
    np.testing.assert_allclose(found, tone(), atol=1e-4)


@pytest.mark.parametrize("name", ["mp3", "opus", "aac", "flac"])
def test_other_formats(name):
    pytest.importorskip("av")
    clean = tone(rate=24_000)
    with ContainerEncoder(name, 24_000, streamed=False) as encoder:
        data = encoder.encode(clean) + encoder.finish()
    found, rate = decode(data)
    assert abs(len(found) / rate - 1.5) < 0.1
    spectrum = np.abs(np.fft.rfft(found))
    assert abs(spectrum.argmax() * rate / len(found) - 300) < 2


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no audio at all, only words" * 100,
        bytes(5000),
        b"ffconcat version 1.0\nfile ref.wav\n",
        b"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nref.wav\n#EXT-X-ENDLIST\n",
        b"<?xml version='1.0'?><MPD><BaseURL>ref.wav</BaseURL></MPD>",
    ],
)
def test_what_is_no_audio_opens_nothing_else(data, tmp_path, monkeypatch):
    pytest.importorskip("av")
    (tmp_path / "ref.wav").write_bytes(wav_bytes(tone(), RATE))
    monkeypatch.chdir(tmp_path)
    refused(data, "no audio file that can be read")


def test_without_the_library_only_wav_is_read(monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    monkeypatch.delitem(sys.modules, "ouzel.audio.media", raising=False)  # another test may have imported it
    with pytest.raises(MissingExtraError, match=r"pip install 'ouzel\[serve\]'"):
        decode(b"ID3 and so on")
    assert len(decode(wav_bytes(tone(), RATE))[0]) == len(tone())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"RIFF", "no WAV file"),
        (b"RIFF\0\0\0\0AVI ", "no WAV file"),
        (wav_header(RATE, 0)[:36], "without samples"),
        (b"RIFF\0\0\0\0WAVEdata\4\0\0\0abcd", "without a format"),
        (wav_header(RATE, 0)[:20] + struct.pack("<H", 6) + wav_header(RATE, 0)[22:], "kind 6 with 16 bits"),
        (wav_header(RATE, 0)[:22] + struct.pack("<H", 0) + wav_header(RATE, 0)[24:], "0 channels"),
        (wav_header(0, 0), "a sample rate of 0 Hz"),
        (wav_header(4_000_000_000 // 2, 0), "8000 to 192000"),
    ],
)
def test_damaged_wav_files(data, words):
    refused(data, words)


@given(st.binary(max_size=120))
@settings(max_examples=200)
def test_any_bytes_behind_a_riff_header_are_samples_or_a_sentence(data):
    try:
        found, rate = decode(b"RIFF\0\0\0\0WAVE" + data)
    except UsageError:
        return
    assert found.ndim == 1
    assert rate >= 8000


def test_files(tmp_path):
    (tmp_path / "a.wav").write_bytes(wav_bytes(tone(), RATE))
    assert read_recording(tmp_path / "a.wav")[1] == RATE
    with pytest.raises(UsageError, match=r"none\.wav cannot be read: No such file"):
        read_recording(tmp_path / "none.wav")


def test_size_and_length_are_bounded(monkeypatch):
    monkeypatch.setattr(recording, "MAX_BYTES", 1000)
    refused(wav_bytes(tone(), RATE), "larger than")
    monkeypatch.undo()
    found, rate = decode(wav_bytes(np.zeros(40 * RATE, np.float32), RATE))
    assert 30 * rate < len(found) < 31 * rate
    with pytest.raises(UsageError, match="1 to 30 s long, but is longer"):
        check_recording(found, rate)


@pytest.mark.parametrize(
    ("samples", "rate", "message"),
    [
        (tone(0.5), RATE, r"1 to 30 s long, but is 0\.5 s"),
        (np.zeros(RATE * 2), RATE, "is silent"),
        (tone() * 32767, RATE, "samples from -1 to 1, but they go to 13106"),
        (np.where(tone() > 0.3, np.nan, 0), RATE, "not numbers"),
        (np.stack([tone(), tone()]), RATE, r"one channel, shape \(n,\), not \(2, 24000\)"),
        (["a", "b"], RATE, "an array of numbers"),
        (tone(), 7_999, "8000 to 192000"),
        (tone(), 24_000.0, "whole number of Hz"),
    ],
)
def test_what_no_voice_can_be_taken_from(samples, rate, message):
    with pytest.raises(UsageError, match=message) as caught:
        check_recording(samples, rate)
    assert caught.value.param == "ref_audio"


@pytest.mark.parametrize("rate", [8_000, 11_025, 16_000, 22_050, 32_000, 44_100, 48_000, 192_000, 23_999])
def test_another_rate_keeps_the_band_and_drops_what_is_above(rate):
    time = np.arange(rate) / rate
    top = 0.45 * min(rate, 24_000)
    low = np.sin(2 * np.pi * 440 * time) + 0.5 * np.sin(2 * np.pi * top * time)
    high = np.sin(2 * np.pi * 14_000 * time) if rate > 30_000 else 0
    found = resample((low + high).astype(np.float32), rate, 24_000)
    assert len(found) == 24_000
    after = np.arange(24_000) / 24_000
    expected = np.sin(2 * np.pi * 440 * after) + 0.5 * np.sin(2 * np.pi * top * after)
    inner = slice(1000, -1000)  # the edges are a step out of silence
    error = np.abs(found - expected)[inner].max()
    assert error < 1e-4


def test_another_rate_is_close_to_another_resampler():
    noise = signal.lfilter([1], [1, -0.9], np.random.default_rng(3).standard_normal(44_100))
    found = resample(noise.astype(np.float32), 44_100, 24_000)
    other = signal.resample_poly(noise, 240, 441, window=("kaiser", 14.0))
    spectra = [np.abs(np.fft.rfft(x[:24_000]))[:10_000] for x in (found, other)]
    np.testing.assert_allclose(*spectra, rtol=0.1, atol=0.02 * spectra[1].max())


@pytest.mark.parametrize("count", [0, 1, 2, 7, 441])
def test_short_pieces_have_their_length(count):
    assert len(resample(np.ones(count, np.float32), 44_100, 24_000)) == -(-count * 240 // 441)
    assert len(resample(np.ones(count, np.float32), 16_000, 24_000)) == -(-count * 3 // 2)
