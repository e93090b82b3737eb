"""WAV files and streams, 16-bit mono PCM.

A seekable file gets its true sizes when it is closed. A pipe cannot, so both sizes are 0xFFFFFFFF there: the convention for
"until the end of the stream", and what vLLM-Omni sends.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable
from contextlib import suppress
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from ouzel.audio.pcm import Samples, to_pcm16
from ouzel.errors import UsageError
from ouzel.unfinished import Unfinished

HEADER_SIZE = 44
UNKNOWN = 0xFFFFFFFF
MAX_DATA = UNKNOWN - HEADER_SIZE  # the RIFF size field has 32 bits


def wav_header(sample_rate: int, data_bytes: int | None) -> bytes:
    """The 44 bytes before the samples; `data_bytes` None for a stream of unknown length."""
    riff = UNKNOWN if data_bytes is None else data_bytes + HEADER_SIZE - 8
    data = UNKNOWN if data_bytes is None else data_bytes
    fmt = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, sample_rate, sample_rate * 2, 2, 16)
    return struct.pack("<4sI4s", b"RIFF", riff, b"WAVE") + fmt + struct.pack("<4sI", b"data", data)


def wav_bytes(samples: Samples, sample_rate: int) -> bytes:
    """A complete WAV in memory."""
    pcm = to_pcm16(samples)
    return wav_header(sample_rate, len(pcm)) + pcm


class WavStream:
    """Writes a WAV to an open binary stream, which stays the caller's.

    The header goes out with the first samples, so that an error before the first sound leaves the stream empty.
    """

    def __init__(self, stream: BinaryIO, sample_rate: int) -> None:
        self._stream = stream
        self._sample_rate = sample_rate
        self._seekable = _seekable(stream)
        self._origin = stream.tell() if self._seekable else 0
        self._started = False
        self._data = 0

    def write(self, samples: Samples) -> None:
        pcm = to_pcm16(samples)
        if self._seekable and self._data + len(pcm) > MAX_DATA:
            raise UsageError("A WAV file cannot hold more than 4 GiB; write raw PCM instead.")
        self._start()
        self._stream.write(pcm)
        self._data += len(pcm)

    def finish(self) -> None:
        """Rewrite the header with the true sizes where the stream allows it, and flush."""
        self._start()
        if self._seekable:
            end = self._stream.tell()
            self._stream.seek(self._origin)
            self._stream.write(wav_header(self._sample_rate, self._data))
            self._stream.seek(end)
        self._stream.flush()

    def _start(self) -> None:
        if not self._started:
            self._stream.write(wav_header(self._sample_rate, None))
            self._started = True


class WavFile:
    """A WAV file that appears under its name complete or not at all.

    Samples go to a temporary neighbour; a clean exit of the `with` block renames it, an error or `discard` removes it.
    """

    def __init__(self, path: str | PathLike[str], sample_rate: int) -> None:
        self.path = Path(path)
        self._partial = Unfinished.beside(self.path)
        try:
            self._file: io.BufferedWriter | None = self._partial.path.open("wb")
        except OSError as exc:
            raise UsageError(f"Cannot write {str(self.path)!r}: {exc.strerror or exc}.") from exc
        self._stream = WavStream(self._file, sample_rate)

    def write(self, samples: Samples) -> None:
        self._stream.write(samples)

    def commit(self) -> Path:
        """Write the true sizes and give the file its name, replacing an older one."""
        if self._file is not None:
            try:
                self._stream.finish()
                self._file.close()
                self._partial.become(self.path)
            except BaseException:
                self.discard()
                raise
            self._file = None
        return self.path

    def discard(self) -> None:
        """Leave nothing behind. Idempotent."""
        if self._file is not None:
            with suppress(OSError):  # a full disk fails again when the buffer is flushed; the file goes away all the same
                self._file.close()
            self._partial.discard()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.commit()
        else:
            self.discard()


def write_wav(path: str | PathLike[str], chunks: Iterable[Samples], sample_rate: int) -> Path:
    """Write all chunks (float32, mono) to `path`; an error in the iterable leaves no file."""
    with WavFile(path, sample_rate) as out:
        for samples in chunks:
            out.write(samples)
    return out.path


def _seekable(stream: BinaryIO) -> bool:
    """Whether the stream can really go back: a terminal or an appended file says so and cannot."""
    if not stream.seekable():
        return False
    mode = getattr(stream, "mode", "")
    return not (isinstance(mode, str) and "a" in mode)
