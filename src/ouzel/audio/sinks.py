"""Where played samples go: a sound device through the `play` extra, or the pipe of a player that the system has."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ouzel.audio.pcm import Samples, to_pcm16
from ouzel.audio.ring import SampleRing
from ouzel.errors import MissingExtraError, SynthesisError, choose

BACKENDS = ("auto", "sounddevice", "aplay", "ffplay")
BLOCK_S = 0.02  # what a pipe gets at a time, and so what it can still utter after a stop besides its own buffer


class Sink(Protocol):
    def wait_played(self) -> None:
        """Wait until what was taken from the ring has been heard; raises SynthesisError if the output broke down."""

    def stop(self) -> None:
        """Silent at once. Idempotent, from any thread."""


class DeviceSink:
    """A sound device; the driver's callback reads the ring. `sounddevice` is the imported module."""

    def __init__(self, ring: SampleRing, sample_rate: int, sounddevice: Any) -> None:
        self._ring = ring
        self._done = threading.Event()

        def callback(out: Any, frames: int, time: Any, status: Any) -> None:
            block: Samples = out[:, 0]
            ring.read_into(block)
            if ring.drained:
                raise sounddevice.CallbackStop

        self._stream = sounddevice.OutputStream(
            samplerate=sample_rate,
            channels=1,
            dtype="float32",
            latency="low",
            callback=callback,
            finished_callback=self._done.set,
        )
        self._stream.start()

    def wait_played(self) -> None:
        self._done.wait()
        self._stream.close()

    def stop(self) -> None:
        self._ring.close()
        self._stream.abort()
        self._stream.close()
        self._done.set()


class PipeSink:
    """A program that plays s16 mono PCM from its standard input. A thread feeds it; `stop` kills it, its buffer included."""

    def __init__(self, ring: SampleRing, sample_rate: int, command: Sequence[str]) -> None:
        self._ring = ring
        self._block = max(1, round(sample_rate * BLOCK_S))
        self._name = command[0]
        self._stopped = False
        self._lock = threading.Lock()
        self._failure: str | None = None
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._thread = threading.Thread(target=self._feed, name="ouzel-player", daemon=True)
        self._thread.start()

    def _feed(self) -> None:
        pipe = self._process.stdin
        if pipe is None:
            return
        block = np.zeros(self._block, dtype=np.float32)
        try:
            with pipe:
                while self._ring.wait_readable():
                    pipe.write(to_pcm16(block[: self._ring.read_into(block)]))
        except OSError as exc:  # the program has gone; whether that was our doing is judged where someone waits
            self._failure = str(exc)
        finally:
            self._ring.close()

    def wait_played(self) -> None:
        self._thread.join()
        code = self._process.wait()
        with self._lock:
            if not self._stopped and (code or self._failure):
                raise SynthesisError(f"The player {self._name!r} ended with code {code}: {self._failure or 'no audio device?'}")

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
        self._process.kill()
        self._ring.close()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._process.wait()


def pipe_command(program: str, path: str, sample_rate: int) -> list[str]:
    """How `program` is told to play s16 mono PCM from its standard input."""
    if program == "aplay":
        return [path, "-q", "-t", "raw", "-f", "S16_LE", "-c", "1", "-r", str(sample_rate), "-"]
    return [path, "-loglevel", "quiet", "-nodisp", "-autoexit", "-f", "s16le", "-ar", str(sample_rate), "-ch_layout", "mono", "-"]


def open_sink(
    ring: SampleRing, sample_rate: int, backend: str = "auto", *, which: Callable[[str], str | None] = shutil.which
) -> Sink:
    """`auto` takes sounddevice, else aplay, else ffplay. Raises MissingExtraError when there is nothing to play with."""
    if backend not in BACKENDS:
        raise choose("player", backend, BACKENDS)
    if backend in ("auto", "sounddevice"):
        try:
            import sounddevice
        except (ImportError, OSError) as exc:  # OSError: the wheel is there, the PortAudio library is not
            if backend == "sounddevice":
                raise _nothing_to_play_with(f"sounddevice cannot be used ({exc}).") from exc
        else:
            return DeviceSink(ring, sample_rate, sounddevice)
    for program in ("aplay", "ffplay") if backend == "auto" else (backend,):
        path = which(program)
        if path is not None:
            return PipeSink(ring, sample_rate, pipe_command(program, path, sample_rate))
    missing = "Neither sounddevice nor aplay nor ffplay is there." if backend == "auto" else f"There is no program {backend!r}."
    raise _nothing_to_play_with(missing)


def _nothing_to_play_with(reason: str) -> MissingExtraError:
    return MissingExtraError(f"{reason} To hear the speech: pip install 'ouzel[play]', or write it to a file instead.")
