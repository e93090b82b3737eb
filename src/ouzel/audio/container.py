"""MP3, Opus in Ogg, AAC in ADTS and FLAC, by FFmpeg's libraries through the `av` package."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ouzel.audio.pcm import Samples, to_pcm16
from ouzel.errors import MissingExtraError

if TYPE_CHECKING:
    from av.container import OutputContainer

LOW_RATE = 16_000  # Hz, below which the encoders refuse the usual bit rate


@dataclass(frozen=True, slots=True)
class _Kind:
    """bits: a second, at the full rate and below LOW_RATE; None for lossless. streamed: muxer options of a stream."""

    container: str
    codec: str
    bits: tuple[int, int] | None
    streamed: dict[str, str] = field(default_factory=dict)


_KINDS = {
    # Without the Xing frame and the tag, since both are written once the length is known.
    "mp3": _Kind("mp3", "libmp3lame", (64_000, 32_000), {"id3v2_version": "0", "write_xing": "0"}),
    # An Ogg page holds back a second of audio unless told otherwise; 20 ms is one Opus packet.
    "opus": _Kind("ogg", "libopus", (32_000, 24_000), {"page_duration": "20000"}),
    "aac": _Kind("adts", "aac", (64_000, 32_000)),
    "flac": _Kind("flac", "flac", None),
}


class _Pipe:
    """What the muxer writes to; having no `seek`, it tells the muxer not to go back."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def write(self, data: Any) -> int:
        self._bytes += data
        return len(data)

    def take(self) -> bytes:
        taken = bytes(self._bytes)
        self._bytes.clear()
        return taken


class ContainerEncoder:
    """One encoder and one muxer for one response; see `ouzel.audio.encoder.Encoder`."""

    def __init__(self, name: str, sample_rate: int, *, streamed: bool) -> None:
        try:
            import av
        except ImportError as error:
            raise MissingExtraError(f"{name} needs an audio library: pip install 'ouzel[serve]'; wav and pcm do not.") from error
        kind = _KINDS[name]
        self._frame = av.AudioFrame
        self._rate = sample_rate
        self._position = 0
        self._pipe = _Pipe() if streamed else None
        self._file = io.BytesIO()
        options = {**kind.streamed, "flush_packets": "1"} if streamed else {}
        target: Any = self._pipe or self._file
        self._container: OutputContainer | None = av.open(target, "w", format=kind.container, options=options)
        stream: Any = self._container.add_stream(kind.codec, rate=sample_rate, layout="mono")
        if kind.bits is not None:
            stream.bit_rate = kind.bits[sample_rate < LOW_RATE]
        self._stream = stream

    def header(self) -> bytes:
        return b""  # goes out with the first packet

    def encode(self, samples: Samples) -> bytes:
        if self._container is None or not len(samples):
            return b""
        frame = self._frame.from_ndarray(np.frombuffer(to_pcm16(samples), np.int16)[None], format="s16", layout="mono")
        frame.sample_rate = self._rate
        frame.pts = self._position
        self._position += len(samples)
        self._container.mux(self._stream.encode(frame))
        return self._pipe.take() if self._pipe else b""

    def finish(self) -> bytes:
        if self._container is None:
            return b""
        self._container.mux(self._stream.encode(None))
        self.close()
        return self._pipe.take() if self._pipe else self._file.getvalue()

    def close(self) -> None:
        if self._container is not None:
            self._container.close()
            self._container = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
