"""Recordings as files: WAV by itself, everything else by FFmpeg's libraries through the `av` package, where that is installed."""

from __future__ import annotations

import struct
import threading
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.audio.pcm import Samples
from ouzel.errors import MissingExtraError, UsageError

MIN_S, MAX_S = 1.0, 30.0
"""Seconds of a recording that a voice is taken from: less says little of a voice, more costs time and memory to no end."""
LOWEST_RATE, HIGHEST_RATE = 8_000, 192_000  # Hz
MAX_BYTES = 64 << 20  # half a minute of stereo at the highest rate, 32 bits
_SILENT = 1e-4  # peak of a recording in which nothing is to be heard, -80 dB
_LOUDEST = 4.0  # above it the samples are no floats from -1 to 1, but for example 16-bit numbers
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_MOST_CHANNELS = 32


def read_recording(path: str | PathLike[str]) -> tuple[Samples, int]:
    """`decode` of a file. UsageError also when it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"The recording {path} cannot be read: {error.strerror or error}.", param="ref_audio") from None
    return decode(data)


def decode(data: bytes) -> tuple[Samples, int]:
    """(float32 (n,), sample rate in Hz) of a whole audio file, its channels averaged.

    Reads no more than just above MAX_S of it. UsageError for what is no audio, too large, or of a rate that is none;
    MissingExtraError when only `av` could tell.
    """
    if len(data) > MAX_BYTES:
        raise _bad(f"is larger than {MAX_BYTES >> 20} MB; cut {MAX_S:g} s out of it")
    return parse_wav(data) if data[:4] == b"RIFF" else _decode_other(data)


def parse_wav(data: bytes) -> tuple[Samples, int]:
    """`decode` of WAV: integers of 8, 16, 24 or 32 bits, or float32 or float64. A stream's header without true sizes is fine."""
    if len(data) < 12 or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise _bad("is no WAV file")
    form, at = None, 12
    while at + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, at)
        body = data[at + 8 : at + 8 + size]
        if name == b"fmt ":
            form = _format(body)
        elif name == b"data":
            if form is None:
                break
            return _samples(body, *form)
        at += 8 + size + size % 2
    raise _bad("is a WAV file without " + ("samples" if form else "a format"))


def check_recording(samples: Any, sample_rate: Any) -> Samples:
    """The samples as contiguous float32 (n,) if a voice can be taken from them; a UsageError says why not."""
    if not isinstance(sample_rate, int) or isinstance(sample_rate, bool):
        raise _bad(f"has a sample rate of {sample_rate!r}; it must be a whole number of Hz")
    _check_rate(sample_rate)
    try:
        heard = np.ascontiguousarray(samples, np.float32)
    except (TypeError, ValueError):
        raise _bad("must be an array of numbers") from None
    if heard.ndim != 1:
        raise _bad(f"must have one channel, shape (n,), not {heard.shape}")
    seconds = len(heard) / sample_rate
    if not MIN_S <= seconds <= MAX_S:
        found = "longer" if seconds > MAX_S else f"{seconds:.1f} s"
        raise _bad(f"must be {MIN_S:g} to {MAX_S:g} s long, but is {found}")
    peak = float(np.abs(heard).max())
    if not np.isfinite(peak):
        raise _bad("has samples that are not numbers")
    if peak < _SILENT:
        raise _bad("is silent")
    if peak > _LOUDEST:
        raise _bad(f"must have samples from -1 to 1, but they go to {peak:g}")
    return heard


def _format(body: bytes) -> tuple[int, int, int, int]:
    """(kind, channels, sample rate, bits) of a `fmt ` chunk."""
    if len(body) < 16:
        raise _bad("is a WAV file without a format")
    kind, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", body)
    if kind == _EXTENSIBLE and len(body) >= 26:
        (kind,) = struct.unpack_from("<H", body, 24)
    if (kind, bits) not in {(_PCM, 8), (_PCM, 16), (_PCM, 24), (_PCM, 32), (_FLOAT, 32), (_FLOAT, 64)}:
        raise _bad(f"is a WAV file of kind {kind} with {bits} bits; save it as 16-bit PCM")
    if not 1 <= channels <= _MOST_CHANNELS:
        raise _bad(f"has {channels} channels; save it with one")
    _check_rate(rate)
    return kind, channels, rate, bits


def _samples(body: bytes, kind: int, channels: int, rate: int, bits: int) -> tuple[Samples, int]:
    width = bits // 8 * channels
    body = body[: len(body) // width * width][: width * _most(rate)]
    values: NDArray[Any]
    if kind == _FLOAT:
        values = np.frombuffer(body, f"<f{bits // 8}").astype(np.float32)
    elif bits == 8:
        values = (np.frombuffer(body, np.uint8).astype(np.float32) - 128) / 128
    elif bits == 24:
        wide = np.zeros((len(body) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(body, np.uint8).reshape(-1, 3)
        values = (wide.view("<i4")[:, 0] / 2**31).astype(np.float32)
    else:
        values = (np.frombuffer(body, f"<i{bits // 8}") / 2 ** (bits - 1)).astype(np.float32)
    mono: Samples = values.reshape(-1, channels).mean(1, dtype=np.float32)
    return mono, rate


def _decode_other(data: bytes) -> tuple[Samples, int]:
    try:
        from ouzel.audio.media import decode as decode_media
    except ImportError:
        raise MissingExtraError(
            "The recording is no WAV file; other formats need an audio library: pip install 'ouzel[serve]'.", param="ref_audio"
        ) from None
    found = decode_media(data, threading.Event())
    return found.samples, found.sample_rate


def _most(rate: int) -> int:
    """Samples that tell that a recording is too long."""
    return int(MAX_S * rate) + rate // 2


def _check_rate(rate: int) -> None:
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:
        raise _bad(f"has a sample rate of {rate} Hz; {LOWEST_RATE} to {HIGHEST_RATE} can be read")


def refused(reason: str) -> UsageError:
    """Why a recording is not read: one sentence, behind the field that it is about."""
    return UsageError(f"ref_audio: {reason}", param="ref_audio")


def _bad(what: str) -> UsageError:
    return UsageError(f"The recording {what}.", param="ref_audio")
