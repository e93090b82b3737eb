"""Where `ouzel say` puts the samples: a file that appears whole or not at all, or a pipe."""

from __future__ import annotations

import errno
import os
import stat
import sys
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol, Self

from ouzel.audio.pcm import Samples, to_pcm16
from ouzel.audio.wav import WavFile, WavStream
from ouzel.errors import OuzelError, UsageError
from ouzel.unfinished import Unfinished

FORMATS = ("wav", "pcm")
_SUFFIXES = {".wav": "wav", ".wave": "wav", ".pcm": "pcm", ".raw": "pcm"}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Output(AbstractContextManager["Output"], Protocol):
    """Takes float32 mono samples; leaving its `with` block cleanly completes the output, an error removes what can be removed."""

    def write(self, samples: Samples) -> None: ...


def check_output(out: str, format_name: str | None) -> str:
    """The format for `-o out`, checked before anything slow happens. Raises UsageError."""
    if out == "-":
        if sys.stdout.isatty():
            raise UsageError("-o - would write audio to the terminal; redirect it or pipe it into a player, or use -o FILE.")
        return format_name or "wav"
    if not out:
        raise UsageError("-o needs a file name such as speech.wav; - is standard output.")
    path = Path(out)
    if os.path.isdir(path):
        raise UsageError(f"-o {out} is a folder; give a file name such as {path / 'speech.wav'}.")
    if not os.path.isdir(path.parent):
        raise UsageError(f"-o {out}: there is no folder {path.parent}.")
    if format_name is not None:
        return format_name
    if os.path.exists(path) and not os.path.isfile(path):
        return "wav"
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise UsageError(
            f"-o {out}: unknown kind of audio file {suffix or 'without a suffix'!r}; "
            f"valid suffixes: {', '.join(_SUFFIXES)}, or give --format."
        )
    return _SUFFIXES[suffix]


def open_output(out: str, format_name: str, sample_rate: int) -> Output:
    """Where `-o out` goes. A pipe or device is written to, never replaced by a file; so is a link's target, not the link."""
    if out == "-":
        return _Stream(sys.stdout.buffer, "standard output", format_name, sample_rate, close=False)
    path = Path(os.path.realpath(out))
    if os.path.exists(path) and not stat.S_ISREG(path.stat().st_mode):
        try:
            stream = path.open("wb")
        except OSError as err:
            raise UsageError(f"Cannot write {out}: {err.strerror or err}.") from err
        return _Stream(stream, out, format_name, sample_rate, close=True)
    return _File(path, out, format_name, sample_rate)


class _Stream:
    """A pipe, a device or standard output."""

    def __init__(self, stream: BinaryIO, name: str, format_name: str, sample_rate: int, *, close: bool) -> None:
        self._stream = stream
        self._name = name
        self._wav = WavStream(stream, sample_rate) if format_name == "wav" else None
        self._close = close

    def write(self, samples: Samples) -> None:
        with _Explained(self._name):
            if self._wav is not None:
                self._wav.write(samples)
            else:
                self._stream.write(to_pcm16(samples))
            self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None and self._wav is not None:
                with _Explained(self._name):
                    self._wav.finish()
        finally:
            if self._close:
                with suppress(OSError):
                    self._stream.close()


class _File:
    """A regular file."""

    def __init__(self, path: Path, name: str, format_name: str, sample_rate: int) -> None:
        self._name = name
        self._file: WavFile | _PcmFile = WavFile(path, sample_rate) if format_name == "wav" else _PcmFile(path, name)

    def write(self, samples: Samples) -> None:
        with _Explained(self._name):
            self._file.write(samples)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            self._file.discard()
            return
        with _Explained(self._name):
            self._file.commit()


class _PcmFile:
    """Raw s16le samples; like WavFile, a temporary neighbour that gets its name at the end."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._partial = Unfinished.beside(path)
        try:
            self._file = self._partial.path.open("wb")
        except OSError as err:
            raise UsageError(f"Cannot write {name!r}: {err.strerror or err}.") from err

    def write(self, samples: Samples) -> None:
        self._file.write(to_pcm16(samples))

    def commit(self) -> None:
        try:
            self._file.close()
            self._partial.become(self._path)
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        with suppress(OSError):  # a full disk fails once more when the buffer is flushed
            self._file.close()
        self._partial.discard()


class _Explained:
    """Turns the system's write errors into a sentence; a closed pipe passes, `ouzel.cli.main` has the sentence for it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not isinstance(error, OSError) or isinstance(error, BrokenPipeError):
            return
        why = "no room is left there" if error.errno in _FULL else (error.strerror or str(error))
        raise OuzelError(f"Writing {self._name} failed: {why}; nothing was kept.") from error
