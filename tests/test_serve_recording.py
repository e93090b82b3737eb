"""From what `ref_audio` says to samples: formats, lengths, what is no recording, and files below one directory."""

from __future__ import annotations

import asyncio
import base64
import os
import random
import threading
from pathlib import Path

import numpy as np
import pytest

from ouzel.audio.media import Recording, decode
from ouzel.errors import ConfigError, UsageError
from ouzel.serve.recording import Recordings
from ouzel.serve.settings import ServeSettings
from ouzel.serve.workers import Workers
from recording_case import muxed, packed, uri, voice_like, wav


def read(source: str, *, path: bool = False, **settings) -> Recording:
    async def ask() -> Recording:
        return await Recordings(ServeSettings(**settings), Workers()).read(source, path=path)

    return asyncio.run(ask())


def refusal(source: str, **options) -> str:
    with pytest.raises(UsageError) as caught:
        read(source, **options)
    message = str(caught.value)
    assert caught.value.param == "ref_audio"
    assert message.startswith("ref_audio: ")
    assert message.endswith((".", "…)."))
    assert "\n" not in message
    return message


def similar(found: Recording, rate: int, *, level: float = 1.0, db: float = 20.0) -> bool:
    """Whether it is the buzz, wherever it begins (packed formats shift it by some samples)."""
    assert found.sample_rate == rate
    assert found.samples.dtype == np.float32
    want = voice_like(1.5, rate) * level
    assert abs(len(found.samples) - len(want)) < 0.1 * rate
    n = 1 << 17
    # The shift with the greatest correlation, then the error there.
    spectrum = np.fft.rfft(found.samples, n) * np.conj(np.fft.rfft(want, n))
    shift = int(np.argmax(np.fft.irfft(spectrum)))
    shift -= n if shift > n // 2 else 0
    a, b = found.samples[max(shift, 0) :], want[max(-shift, 0) :]
    size = min(len(a), len(b))
    error = a[:size] - b[:size]
    return bool(10 * np.log10(np.sum(b[:size] ** 2) / np.sum(error**2)) > db)


# ---- formats


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW"])
def test_wav(subtype):
    assert similar(read(uri(wav(subtype=subtype))), 24_000, level=0.9, db=22 if subtype in ("PCM_U8", "ULAW", "ALAW") else 60)


@pytest.mark.parametrize(("rate", "channels", "level"), [(44_100, 2, 0.6), (48_000, 6, 0.4), (8_000, 1, 0.9), (192_000, 1, 0.9)])
def test_rates_and_channels(rate, channels, level):
    """The mean of the channels, at the file's own rate."""
    assert similar(read(uri(wav(rate=rate, channels=channels))), rate, level=level, db=60)


@pytest.mark.parametrize(
    ("data", "rate"),
    [
        (lambda: packed(voice_like(), 24_000, "FLAC"), 24_000),
        (lambda: packed(voice_like(), 24_000, "MP3"), 24_000),
        (lambda: packed(voice_like(), 24_000, "OGG", "VORBIS"), 24_000),
        (lambda: packed(voice_like(1.5, 48_000), 48_000, "OGG", "OPUS"), 48_000),
        (lambda: muxed(voice_like(1.5, 44_100), 44_100, "ipod", "aac"), 44_100),
        (lambda: muxed(voice_like(1.5, 44_100), 44_100, "adts", "aac"), 44_100),
        (lambda: muxed(voice_like(1.5, 48_000), 48_000, "webm", "libopus"), 48_000),
        (lambda: muxed(voice_like(1.5, 44_100), 44_100, "mp4", "alac"), 44_100),
    ],
    ids=["flac", "mp3", "vorbis", "opus", "m4a", "aac", "webm", "alac"],
)
def test_packed(data, rate):
    """Whatever type the client says that it is."""
    assert similar(read(uri(data(), "application/octet-stream")), rate, db=12)


def test_a_streamed_wav_has_no_length():
    whole = bytearray(wav())
    whole[4:8] = whole[40:44] = b"\xff" * 4
    assert similar(read(uri(bytes(whole))), 24_000, level=0.9, db=60)


def test_a_picture_in_front_of_an_mp3():
    body = b"APIC" + (400_000).to_bytes(4, "big") + b"\0\0" + b"\0image/jpeg\0\3\0" + b"\xff\xd8" + bytes(400_000 - 16)
    size = len(body)
    tag = b"ID3\3\0\0" + bytes([size >> 21 & 127, size >> 14 & 127, size >> 7 & 127, size & 127]) + body
    assert similar(read(uri(tag + packed(voice_like(), 24_000, "MP3"))), 24_000, db=12)


@pytest.mark.parametrize("spelling", ["DATA:audio/wav;BASE64,{}", "data:;base64,{}", "data:audio/wav;charset=x;base64,{}"])
def test_spellings_of_a_data_uri(spelling):
    text = base64.b64encode(wav()).decode()
    assert len(read(spelling.format(text)).samples) == 36_000
    assert len(read(spelling.format(text.replace("+", "%2B").replace("/", "%2f").rstrip("="))).samples) == 36_000
    assert len(read(spelling.format("\n".join(text[i : i + 76] for i in range(0, len(text), 76)))).samples) == 36_000


# ---- what is no recording, or none that is taken


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.0, "0.00 s"), (0.99, "has 0.99 s; from 1 to 30 s"), (30.2, "longer than 30 s"), (60, "longer than 30 s")],
)
def test_too_short_and_too_long(seconds, words):
    assert words in refusal(uri(wav(seconds, 8000)))


def test_the_limits_themselves_are_in():
    assert len(read(uri(wav(1.0, 8000))).samples) == 8000
    assert len(read(uri(wav(30.0, 8000))).samples) == 240_000
    assert len(read(uri(packed(voice_like(30.0, 8000), 8000, "MP3"))).samples) == 240_000  # without what the encoder put around


@pytest.mark.parametrize(
    ("rate", "channels", "words"), [(4000, 1, "8000 to 192000"), (384_000, 1, "192000"), (8000, 9, "8 channels")]
)
def test_odd_rates_and_channels(rate, channels, words):
    assert words in refusal(uri(wav(1.1, rate, channels)))


def test_samples_that_are_no_numbers():
    samples = np.full(24_000, np.nan)
    assert "no numbers" in refusal(uri(packed(samples, 24_000, "WAV", "FLOAT")))


def test_samples_beyond_full_scale_are_clipped():
    assert read(uri(packed(voice_like() * 1e6, 24_000, "WAV", "FLOAT"))).samples.max() == 1.0


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 1000,
        b"RIFF" + b"\xff" * 1000,
        b"Hello. " * 500,
        b"<svg xmlns='http://www.w3.org/2000/svg'></svg>",
        b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n",
        b"ffconcat version 1.0\nfile /etc/passwd\n",
        b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\nm=audio 5004 RTP/AVP 0\r\n",
        b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + bytes(100),
    ],
    ids=["nothing", "zeros", "riff", "text", "svg", "hls", "concat", "sdp", "png"],
)
def test_what_is_no_audio_file(data, capfd):
    assert "no audio file that can be read; WAV, FLAC, MP3" in refusal(uri(data))
    assert capfd.readouterr().err == ""


def test_a_list_of_files_opens_none(tmp_path):
    """FFmpeg would follow a playlist into files and addresses, were it let to."""
    for suffix in (".wav", ".m3u8"):
        (tmp_path / f"real{suffix}").write_bytes(wav())
    for text in (
        f"#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n{tmp_path}/real.wav\n#EXT-X-ENDLIST\n",
        f"ffconcat version 1.0\nfile {tmp_path}/real.wav\n",
    ):
        assert "no audio file" in refusal(uri(text.encode()))


@pytest.mark.parametrize(("kind", "cut"), [("WAV", 0.9), ("WAV", 0.01), ("FLAC", 0.6), ("FLAC", 0.1)])
def test_what_is_cut_off(kind, cut):
    data = packed(voice_like(4.0), 24_000, kind)
    assert any(
        words in refusal(uri(data[: int(len(data) * cut)])) for words in ("cut off", "damaged", "no audio file", "has 0.0")
    )


def test_random_damage():
    """A recording or one sentence, whatever the bytes are."""
    rng = random.Random(7)
    whole = [wav(1.2, 8000), packed(voice_like(1.2), 24_000, "MP3"), packed(voice_like(1.2), 24_000, "OGG", "VORBIS")]
    whole += [packed(voice_like(1.2), 24_000, "FLAC"), muxed(voice_like(1.2, 44_100), 44_100, "ipod", "aac")]
    outcomes = set()
    for n in range(60):
        data = bytearray(whole[n % len(whole)])
        for _ in range(rng.choice((1, 10, 1000))):
            data[rng.randrange(min(len(data), rng.choice((200, len(data)))))] = rng.randrange(256)
        try:
            outcomes.add(len(decode(bytes(data), threading.Event()).samples) > 0)
        except UsageError:
            outcomes.add(None)
    assert outcomes == {True, None}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("data:audio/wav,RIFF", "data:audio/wav;base64,"),
        ("data:audio/wav;base64", "data:audio/wav;base64,"),
        ("data:audio/wav;base64,%%%", "not base64"),
        ("data:audio/wav;base64,ä", "not base64"),
        ("data:audio/wav;base64,A", "not base64"),
        ("data:audio/wav;base64,", "no audio file"),
        ("UklGRg==", "data: URI"),
        ("/etc/passwd", "data: URI"),
        ("ftp://host/x.wav", "data: URI"),
        ("gopher://127.0.0.1/x", "data: URI"),
        (" http://host/x.wav", "data: URI"),
        ("javascript:alert(1)", "data: URI"),
        ("http://host/x.wav", "--allow-remote-audio"),
        ("HTTPS://host/x.wav", "--allow-remote-audio"),
        ("file:///etc/passwd", "--allowed-local-media-path"),
        ("FILE:/etc/passwd", "--allowed-local-media-path"),
    ],
)
def test_what_is_refused_unless_allowed(source, words):
    assert words in refusal(source)


def test_too_many_bytes():
    assert "more than 10,000 bytes" in refusal(uri(wav()), max_recording_bytes=10_000)
    assert "more than 10,000 bytes" in refusal("data:;base64," + "A" * 14_000, max_recording_bytes=10_000)


def test_who_no_longer_waits_stops_the_work():
    gone = threading.Event()
    gone.set()
    with pytest.raises(UsageError):
        decode(wav(20), gone)


# ---- files


@pytest.fixture
def media(tmp_path: Path) -> Path:
    folder = tmp_path / "media"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "voice one.wav").write_bytes(wav())
    (folder / "deep" / "er" / "v.wav").write_bytes(wav())
    (tmp_path / "media-secret.wav").write_bytes(wav())
    (tmp_path / "secret.wav").write_bytes(wav())
    (folder / "inside.wav").symlink_to("deep/er/v.wav")
    (folder / "out.wav").symlink_to(tmp_path / "secret.wav")
    (folder / "out").symlink_to(tmp_path)
    (folder / "circle").symlink_to("circle")
    os.mkfifo(folder / "pipe")
    return folder


def test_files_below_the_directory(media):
    for source in (f"file://{media}/voice%20one.wav", f"file://localhost{media}/deep/er/v.wav", f"file:{media}/inside.wav"):
        assert len(read(source, allowed_local_media_path=str(media)).samples) == 36_000
    for source in ("voice one.wav", "deep/../deep/er/v.wav", f"{media}/inside.wav"):
        assert len(read(source, path=True, allowed_local_media_path=str(media)).samples) == 36_000
        assert "data: URI" in refusal(source, allowed_local_media_path=str(media))  # ref_audio itself is an address


def test_a_directory_that_is_a_link_itself(media, tmp_path):
    (tmp_path / "link").symlink_to(media)
    assert len(read(f"file://{tmp_path}/link/inside.wav", allowed_local_media_path=str(tmp_path / "link")).samples) == 36_000


@pytest.mark.parametrize(
    "name",
    [
        "../secret.wav",
        "out.wav",
        "out/secret.wav",
        "deep/../../secret.wav",
        "../media-secret.wav",
        "../nothing",
        ".",
        "",
        "circle",
    ],
)
def test_nothing_outside_it(media, name):
    """The same sentence whether it is there or not."""
    for source in (f"file://{media}/{name}", f"file://{media}/" + name.replace(".", "%2e").replace("/", "%2f")):
        message = refusal(source, allowed_local_media_path=str(media))
        assert message == "ref_audio: the file is not below the directory that --allowed-local-media-path of the server names."
    assert "not below" in refusal(f"{media}/{name}", path=True, allowed_local_media_path=str(media))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("file:///etc/passwd", "not below"),
        ("file://{}/\0.wav".replace("\0", "%00"), "not below"),
        ("file://{}/" + "x" * 5000, "too long"),
        ("file://{}/nothing.wav", "no such file"),
        ("file://{}/deep", "directory"),
        ("file://{}/pipe", "not a file"),
        ("file://elsewhere{}/inside.wav", "file:///PATH"),
        ("file://{}/inside.wav?x", "file:///PATH"),
        ("file://{}/%ff.wav", "malformed"),
        ("file://[{}/x", "malformed"),
        ("file:", "file:///PATH"),
    ],
)
def test_odd_paths(media, source, words):
    assert words in refusal(source.replace("{}", str(media)), allowed_local_media_path=str(media))


def test_a_link_that_appears_after_the_check(media, monkeypatch):
    """Between the look at a path and its opening somebody puts a link there."""
    real = Path.resolve

    def then_swapped(self, *args, **kwargs):
        found = real(self, *args, **kwargs)
        if found.name == "v.wav":
            (media / "deep" / "er" / "v.wav").unlink()
            (media / "deep" / "er" / "v.wav").symlink_to(media.parent / "secret.wav")
        return found

    recordings = Recordings(ServeSettings(allowed_local_media_path=str(media)), Workers())
    monkeypatch.setattr(Path, "resolve", then_swapped)
    with pytest.raises(UsageError, match="cannot be read"):
        asyncio.run(recordings.read(f"file://{media}/deep/er/v.wav"))


def test_a_file_that_is_too_large(media):
    assert "more than 10,000 bytes" in refusal(
        f"file://{media}/inside.wav", allowed_local_media_path=str(media), max_recording_bytes=10_000
    )


def test_a_directory_that_is_none(media):
    for path in (media / "nothing", media / "voice one.wav", media / "circle"):
        with pytest.raises(UsageError, match="--allowed-local-media-path"):
            Recordings(ServeSettings(allowed_local_media_path=str(path)), Workers())


@pytest.mark.parametrize(
    "wrong",
    [
        {"private_audio_hosts": ("nas",)},
        {"allow_remote_audio": True, "private_audio_hosts": ("http://nas",)},
        {"allow_remote_audio": True, "private_audio_hosts": ("",)},
        {"max_recording_bytes": 0},
        {"recording_timeout_s": 0},
    ],
    ids=str,
)
def test_settings_that_make_no_sense(wrong):
    with pytest.raises(ConfigError):
        ServeSettings(**wrong)
