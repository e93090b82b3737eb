"""Samples to the bytes of one response: one encoder and one header for each, flushed at the end.

WAV and raw PCM are made here; the packed formats by FFmpeg's libraries (`ouzel.audio.container`, the `serve` extra).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from ouzel.audio.pcm import Samples, to_pcm16
from ouzel.audio.wav import MAX_DATA, wav_header
from ouzel.errors import UsageError, choose


@dataclass(frozen=True, slots=True)
class Format:
    """sized: a file of it begins with its length, which a stream does not know yet; strict readers want the true one."""

    name: str
    media_type: str
    sized: bool = False


FORMATS = {
    found.name: found
    for found in (
        Format("mp3", "audio/mpeg"),
        Format("opus", "audio/ogg"),
        Format("aac", "audio/aac"),
        Format("flac", "audio/flac", sized=True),
        Format("wav", "audio/wav", sized=True),
        Format("pcm", "audio/pcm"),
    )
}


class Encoder(Protocol):
    """Takes float32 mono samples; each call returns the bytes that are ready, perhaps none.

    `header` comes first, `finish` last. `close` drops what is left; it is idempotent and does no work after `finish`.
    """

    def header(self) -> bytes: ...
    def encode(self, samples: Samples) -> bytes: ...
    def finish(self) -> bytes: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None: ...


class PcmEncoder:
    """Little-endian s16 without a header; a WAV stream with one, whose two sizes say "until the end"."""

    def __init__(self, header: bytes = b"") -> None:
        self._header = header

    def header(self) -> bytes:
        return self._header

    def encode(self, samples: Samples) -> bytes:
        return to_pcm16(samples)

    def finish(self) -> bytes:
        return b""

    def close(self) -> None:
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class WavEncoder(PcmEncoder):
    """A whole WAV with its true sizes: nothing comes out before the end."""

    def __init__(self, sample_rate: int) -> None:
        super().__init__()
        self._sample_rate = sample_rate
        self._pcm = bytearray()

    def encode(self, samples: Samples) -> bytes:
        self._pcm += to_pcm16(samples)
        if len(self._pcm) > MAX_DATA:
            raise UsageError("A WAV file cannot hold more than 4 GiB; ask for raw PCM instead.", param="response_format")
        return b""

    def finish(self) -> bytes:
        return wav_header(self._sample_rate, len(self._pcm)) + bytes(self._pcm)


def open_encoder(name: str, sample_rate: int, *, streamed: bool) -> Encoder:
    """The encoder of one response. streamed: bytes come out as samples go in; otherwise all at the end, with a true header.

    Raises UsageError for an unknown format, MissingExtraError when the packed formats' library is not there.
    """
    if name not in FORMATS:
        raise choose("response_format", name, FORMATS)
    if name == "pcm":
        return PcmEncoder()
    if name == "wav":
        return PcmEncoder(wav_header(sample_rate, None)) if streamed else WavEncoder(sample_rate)
    from ouzel.audio.container import ContainerEncoder

    return ContainerEncoder(name, sample_rate, streamed=streamed)
