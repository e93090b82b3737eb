"""Plays a stream on this machine, without gaps where that is possible, and stops at once when told to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from ouzel.audio.gate import Outlook, PlaybackGate
from ouzel.audio.pcm import AudioChunk
from ouzel.audio.ring import SampleRing
from ouzel.audio.sinks import Sink, open_sink

OpenSink = Callable[[SampleRing, int], Sink]


class Player:
    """Plays one stream at a time.

    buffer_s: how far the stream may run ahead of the loudspeaker; while it is full no chunk is taken, and the engine pauses.
    gate: hold the first sample until no gap is foreseen; max_hold_s: but not longer than this after the first chunk.
    backend: "auto", "sounddevice", "aplay" or "ffplay". open_sink: another output in their place.
    """

    def __init__(
        self,
        *,
        backend: str = "auto",
        gate: bool = True,
        max_hold_s: float | None = None,
        buffer_s: float = 2.0,
        open_sink: OpenSink | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open = open_sink or _opener(backend)
        self._gate = gate
        self._max_hold = max_hold_s
        self._buffer_s = buffer_s
        self._clock = clock
        self._lock = threading.Lock()
        self._ring: SampleRing | None = None
        self._sink: Sink | None = None
        self._stopped = False

    def play(self, chunks: Iterable[AudioChunk], *, outlook: Callable[[], Outlook | None] | None = None) -> bool:
        """Play to the end; True if it was heard whole, False after `stop`, which closes a stream that can be closed.

        outlook: asked at every chunk what is still to come; without it the gate measures arrivals and needs two chunks.
        Raises what the stream raises (what came before is not played on), MissingExtraError without an output.
        """
        gate = PlaybackGate(max_hold_s=self._max_hold) if self._gate else None
        ring: SampleRing | None = None
        with self._lock:
            self._stopped = False
        try:
            for chunk in chunks:
                if ring is None:
                    ring = self._begin(chunk.sample_rate, held=gate is not None)
                if ring is None or not ring.write(chunk.samples):
                    close = getattr(chunks, "close", None)
                    if close is not None:
                        close()
                    break
                if gate is not None:
                    gate.arrived(self._clock(), chunk.duration, last=chunk.is_last)
                    start = gate.earliest_start(outlook() if outlook is not None else None)
                    if start is not None:
                        ring.release(start)
        except BaseException:
            self.stop()
            raise
        sink = self._sink
        if ring is None or sink is None:
            return not self._stopped
        ring.end()
        ring.release()
        sink.wait_played()
        with self._lock:
            self._ring = self._sink = None
            return not self._stopped

    def stop(self) -> None:
        """Silent at once: the whole ring and what the output still holds are dropped. Legal at any time, from any thread."""
        with self._lock:
            self._stopped = True
            ring, sink = self._ring, self._sink
        if ring is not None:
            ring.close()
        if sink is not None:
            sink.stop()

    close = stop

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _begin(self, sample_rate: int, *, held: bool) -> SampleRing | None:
        """Open the output for the first chunk; None if `stop` came before it."""
        ring = SampleRing(max(1, round(self._buffer_s * sample_rate)), clock=self._clock)
        if held:
            ring.hold()
        with self._lock:
            if self._stopped:
                return None
            self._ring, self._sink = ring, self._open(ring, sample_rate)
        return ring


def _opener(backend: str) -> OpenSink:
    def opened(ring: SampleRing, sample_rate: int) -> Sink:
        return open_sink(ring, sample_rate, backend)

    return opened
