"""The bytes of an audio file, from anybody, to samples: by FFmpeg's libraries through the `av` package, within limits.

FFmpeg is told which containers and codecs it may know: some others are lists of further files and addresses to read.
"""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import av
import numpy as np
from av.audio.stream import AudioStream
from av.codec.context import CodecContext
from av.container import InputContainer

from ouzel.audio.pcm import Samples
from ouzel.audio.recording import HIGHEST_RATE, LOWEST_RATE, MAX_S, MIN_S, refused

PADDING_S = 0.1  # that packed formats may have in front and behind
MAX_CHANNELS = 8
DECODE_S = 10.0
NAMES = "WAV, FLAC, MP3, Ogg, AAC, MP4 or WebM"
_CONTAINERS = "wav,flac,mp3,ogg,aac,mov,matroska"
_SIZED = ("flac", "mov")  # say how long they are, exactly
_CODECS = frozenset(
    "pcm_u8 pcm_s16le pcm_s24le pcm_s32le pcm_f32le pcm_f64le pcm_alaw pcm_mulaw "
    "flac mp3 mp3float opus libopus vorbis libvorbis aac alac".split()
)
_OPTIONS = {
    "format_whitelist": _CONTAINERS,
    "codec_whitelist": ",".join(sorted(_CODECS)),
    "protocol_whitelist": "none",
    "probesize": str(1 << 17),  # of FFmpeg's 5 MB it reads most to find out that PCM is PCM
}
_STREAMED_RIFF = 1 << 30  # bytes; more is what writers put that cannot go back to the header


@dataclass(frozen=True, slots=True)
class Recording:
    """samples: float32 (n,), mono, from -1 to 1. sample_rate: Hz, the file's own."""

    samples: Samples
    sample_rate: int


def decode(data: bytes, abandoned: threading.Event) -> Recording:
    """Raises UsageError in one sentence. abandoned: end soon, whatever with: nobody waits any more."""
    try:
        with av.open(io.BytesIO(data), "r", options=_OPTIONS, metadata_errors="replace") as container:
            if not container.streams.audio:
                raise refused("the file has no sound in it.")
            recording = _recording(container, container.streams.audio[0], abandoned)
    except (av.FFmpegError, EOFError, ValueError, ArithmeticError, LookupError, MemoryError):
        raise refused(f"this is no audio file that can be read; {NAMES} can.") from None
    size = int.from_bytes(data[4:8], "little") + 8
    if data[:4] == b"RIFF" and len(data) < size < _STREAMED_RIFF:  # of which FFmpeg thinks nothing
        raise refused(f"the file is cut off: it should have {size:,} bytes, and {len(data):,} are there.")
    return recording


def _recording(container: InputContainer, stream: AudioStream, abandoned: threading.Event) -> Recording:
    codec: CodecContext | None = stream.codec_context  # None where FFmpeg may not, or cannot, decode it
    if codec is None or codec.name not in _CODECS:
        raise refused(f"this is no audio file that can be read; {NAMES} can.")
    rate, channels = stream.sample_rate, stream.channels
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:
        raise refused(f"the sample rate must be from {LOWEST_RATE} to {HIGHEST_RATE} Hz, but is {rate}.")
    if not 1 <= channels <= MAX_CHANNELS:
        raise refused(f"at most {MAX_CHANNELS} channels are read, and this has {channels}.")
    most = round((MAX_S + PADDING_S) * rate)
    pieces, count = [], 0
    for piece in _pieces(container, stream, rate, abandoned):
        pieces.append(piece)
        count += len(piece)
        if count > most:
            raise refused(f"the recording is longer than {MAX_S:g} s; from {MIN_S:g} to {MAX_S:g} s are taken.")
    seconds = count / rate
    promised = float((stream.duration or 0) * (stream.time_base or 0))
    if container.format.name.partition(",")[0] in _SIZED and promised - seconds > PADDING_S:
        raise refused(f"the file is cut off: it should have {promised:.1f} s of sound, and {seconds:.1f} s are there.")
    if seconds < MIN_S:
        raise refused(f"the recording has {seconds:.2f} s; from {MIN_S:g} to {MAX_S:g} s are taken.")
    samples = np.concatenate(pieces)[: round(MAX_S * rate)]
    if not np.isfinite(samples).all():
        raise refused("the recording has samples that are no numbers.")
    return Recording(np.clip(samples, -1.0, 1.0), rate)


def _pieces(container: InputContainer, stream: AudioStream, rate: int, abandoned: threading.Event) -> Iterator[Samples]:
    """The decoded pieces, channels averaged. A damaged packet is passed over, a file of them is not."""
    deadline = time.monotonic() + DECODE_S
    packets = broken = 0
    for packet in container.demux(stream):
        if abandoned.is_set() or time.monotonic() > deadline:
            raise refused(f"reading the recording took more than {DECODE_S:g} s.")
        packets += 1
        try:
            frames = stream.decode(packet)
        except av.FFmpegError:
            broken += 1
            continue
        for frame in frames:
            if frame.sample_rate != rate:
                raise refused("the sample rate changes within the recording.")
            yield _mono(frame)
    if broken * 10 > packets:
        raise refused("the file is damaged.")


def _mono(frame: av.AudioFrame) -> Samples:
    """(n,) float32, the mean of the channels."""
    data = frame.to_ndarray()
    if not frame.format.is_planar:
        data = data.reshape(-1, len(frame.layout.channels)).T
    mean: Samples = data.mean(axis=0, dtype=np.float64).astype(np.float32)
    if data.dtype.kind == "u":
        mean -= np.float32(128)
    if data.dtype.kind in "ui":
        mean /= np.float32(1 << (8 * data.dtype.itemsize - 1))
    return mean
