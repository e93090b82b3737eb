"""Bounded audio on its way to a listener: whole chunks inside the engine, plain samples in front of a sound device."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

import numpy as np

from ouzel.audio.pcm import AudioChunk, Samples
from ouzel.errors import SynthesisError


class ChunkRing:
    """Decoded chunks that the consumer has not taken yet. Not locked: its owner is."""

    def __init__(self) -> None:
        self._chunks: deque[AudioChunk] = deque()
        self._next_index = 0
        self.seconds = 0.0

    def __len__(self) -> int:
        return len(self._chunks)

    def push(self, chunk: AudioChunk) -> None:
        if chunk.index != self._next_index:
            raise SynthesisError(f"Audio chunk {chunk.index} arrived where {self._next_index} was due: samples were lost.")
        self._next_index += 1
        self._chunks.append(chunk)
        self.seconds += chunk.duration

    def pop(self) -> AudioChunk | None:
        if not self._chunks:
            return None
        chunk = self._chunks.popleft()
        self.seconds = self.seconds - chunk.duration if self._chunks else 0.0
        return chunk

    def clear(self) -> None:
        """Drop everything at once; the index goes on counting."""
        self._chunks.clear()
        self.seconds = 0.0


class SampleRing:
    """Float32 mono samples between a writer that may wait and a device callback that may not. Thread-safe, waits are passive.

    capacity: samples from which `write` waits, so that a writer runs ahead of the listener by a bounded amount. While playback is
    held back (`hold`), reading gives silence and writing never waits: what playback is being held for has to fit.
    """

    def __init__(self, capacity: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1 sample, not {capacity}")
        self.capacity = capacity
        self._clock = clock
        self._pieces: deque[Samples] = deque()
        self._held = 0
        self._generation = 0
        self._closed = False
        self._ended = False
        self._start: float | None = 0.0  # clock time from which reading gives samples; None: held back
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return self._held

    @property
    def drained(self) -> bool:
        """True once the writer has ended and everything was read."""
        return self._ended and self._held == 0

    def write(self, samples: Samples) -> bool:
        """Append `samples`, waiting for room first; False if `clear` or `close` came meanwhile and they were dropped."""
        with self._changed:
            generation = self._generation
            while self._held >= self.capacity and self._start is not None and generation == self._generation:
                self._changed.wait()
            if self._closed or generation != self._generation:
                return False
            if len(samples):
                self._pieces.append(np.array(samples, dtype=np.float32))
                self._held += len(samples)
                self._changed.notify_all()
            return True

    def read_into(self, out: Samples) -> int:
        """Fill `out` and pad it with zeros; returns how many samples were real. Never waits for a writer."""
        with self._changed:
            done = 0
            while done < len(out) and self._pieces and self._started():
                piece = self._pieces[0]
                n = min(len(piece), len(out) - done)
                out[done : done + n] = piece[:n]
                done += n
                if n == len(piece):
                    self._pieces.popleft()
                else:
                    self._pieces[0] = piece[n:]
            out[done:] = 0.0
            self._held -= done
            if done:
                self._changed.notify_all()
            return done

    def hold(self) -> None:
        """Silence until `release`."""
        with self._changed:
            self._start = None

    def release(self, at: float = 0.0) -> None:
        """Playback may begin at clock time `at`; later calls may still move it, as long as it has not begun."""
        with self._changed:
            self._start = at
            self._changed.notify_all()

    def wait_readable(self) -> bool:
        """Wait for samples that may be read; False when nothing more will come."""
        with self._changed:
            while not self._closed and not self.drained:
                if self._held and self._started():
                    return True
                delay = None if self._start is None or not self._held else self._start - self._clock()
                self._changed.wait(delay)
            return False

    def wait_drained(self) -> None:
        """Wait until everything written was read, or the ring was cleared or closed."""
        with self._changed:
            generation = self._generation
            while self._held and generation == self._generation:
                self._changed.wait()

    def end(self) -> None:
        """The writer has nothing more; what is held still plays."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def clear(self) -> None:
        """Silence at once: drop what is held and turn away a write that is waiting."""
        with self._changed:
            self._pieces.clear()
            self._held = 0
            self._generation += 1
            self._changed.notify_all()

    def close(self) -> None:
        """`clear`, and refuse everything after it. Idempotent."""
        with self._changed:
            self._closed = True
            self.clear()

    def _started(self) -> bool:
        return self._start is not None and self._clock() >= self._start
