"""Bounded audio on its way to a listener: whole chunks inside the engine, plain samples in front of a sound device."""

from __future__ import annotations

import threading
from collections import deque

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
    """Float32 mono samples between a writer that may wait and a device callback that may not. Thread-safe.

    capacity: samples held at most; `write` waits (passively) while the ring is full, so a writer runs ahead by that much and
    no more.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1 sample, not {capacity}")
        self._buffer = np.zeros(capacity, dtype=np.float32)
        self._start = 0
        self._held = 0
        self._generation = 0
        self._closed = False
        self._ended = False
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return self._held

    @property
    def capacity(self) -> int:
        return len(self._buffer)

    @property
    def drained(self) -> bool:
        """True once the writer has ended and everything was read."""
        return self._ended and self._held == 0

    def write(self, samples: Samples) -> bool:
        """Append all of `samples`, waiting for room; False if `clear` or `close` came meanwhile and the rest was dropped."""
        with self._changed:
            generation = self._generation
            done = 0
            while done < len(samples):
                while self._held == self.capacity and not self._closed and generation == self._generation:
                    self._changed.wait()
                if self._closed or generation != self._generation:
                    return False
                n = min(self.capacity - self._held, len(samples) - done)
                end = (self._start + self._held) % self.capacity
                first = min(n, self.capacity - end)
                self._buffer[end : end + first] = samples[done : done + first]
                self._buffer[: n - first] = samples[done + first : done + n]
                self._held += n
                done += n
                self._changed.notify_all()
            return not self._closed

    def read_into(self, out: Samples) -> int:
        """Fill `out` and pad it with zeros; returns how many samples were real. Never waits for a writer."""
        with self._changed:
            n = min(len(out), self._held)
            first = min(n, self.capacity - self._start)
            out[:first] = self._buffer[self._start : self._start + first]
            out[first:n] = self._buffer[: n - first]
            out[n:] = 0.0
            self._start = (self._start + n) % self.capacity
            self._held -= n
            if n:
                self._changed.notify_all()
            return n

    def wait_readable(self) -> bool:
        """Wait for samples, for the end or for `close`; False when nothing more will come."""
        with self._changed:
            while self._held == 0 and not self._closed and not self._ended:
                self._changed.wait()
            return self._held > 0 and not self._closed

    def wait_drained(self) -> None:
        """Wait until everything written was read, or the ring was cleared or closed."""
        with self._changed:
            generation = self._generation
            while self._held and not self._closed and generation == self._generation:
                self._changed.wait()

    def end(self) -> None:
        """The writer has nothing more; what is held still plays."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def clear(self) -> None:
        """Silence at once: drop what is held and turn away a write that is waiting."""
        with self._changed:
            self._held = 0
            self._generation += 1
            self._changed.notify_all()

    def close(self) -> None:
        """`clear`, and refuse everything after it. Idempotent."""
        with self._changed:
            self._closed = True
            self._held = 0
            self._generation += 1
            self._changed.notify_all()
