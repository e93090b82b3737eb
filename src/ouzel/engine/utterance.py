"""The user's end of an utterance: iterate it, cancel it, ask how it went."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Self

import numpy as np

from ouzel.audio.pcm import AudioChunk
from ouzel.engine.metrics import UtteranceMetrics
from ouzel.engine.registry import Registry
from ouzel.engine.speech import Speech
from ouzel.engine.work import Work
from ouzel.errors import SynthesisError, UsageError

_LOCK_S = 0.5


class Utterance:
    """A stream of AudioChunk, for `for` and for `async for`; it is being spoken from the moment it exists.

    Dropping it (an early `break`, garbage collection) cancels it. One consumer at a time; `cancel` may come from any thread.
    Iteration raises what went wrong; after a cancel it just ends.
    """

    def __init__(self, work: Work, registry: Registry, sample_rate: int, seed: int | None = None) -> None:
        self._work = work
        self._registry = registry
        self._due = 0
        self.sample_rate = sample_rate
        self.seed = seed
        self.owner: object = None  # kept alive for as long as the utterance is
        self._finalizer = weakref.finalize(self, _abandon, work, registry)
        self._finalizer.atexit = False  # the engine ends everything at exit

    # ---- state

    @property
    def finish_reason(self) -> str | None:
        """None until the end of the audio was decoded, then "stop", "length", "stuck", "cancelled" or "error"."""
        with self._registry.lock:
            return self._work.reason if self._work.ended else None

    @property
    def metrics(self) -> UtteranceMetrics:
        """The figures so far; final once the utterance has ended."""
        with self._registry.lock:
            return self._work.recorder.snapshot()

    @property
    def done(self) -> bool:
        """Whether generation has ended; audio may still be waiting to be taken."""
        return self._work.ended

    # ---- end

    def cancel(self) -> None:
        """Stop now: nothing more is heard, queued frames and states are dropped. Legal at any time, twice, from any thread."""
        registry = self._registry
        # A signal handler may interrupt this very thread while it holds the lock; nobody else has it for as long as this.
        if not registry.lock.acquire(timeout=_LOCK_S):
            self._work.abandoned = True
        else:
            try:
                self._work.close("cancelled")
                registry.sweep()
            finally:
                registry.lock.release()
        registry.wake()

    close = cancel

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # ---- consume

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> AudioChunk:
        work, registry = self._work, self._registry
        with registry.lock:
            registry.want(work, not self._ready())
            try:
                while not self._ready():
                    seen = registry.progress
                    if not work.ready.wait_for(self._ready, registry.options.stall_timeout_s) and registry.progress == seen:
                        self._stalled()
            finally:
                registry.want(work, False)
            chunk = self._pop()
        registry.talker_signal.set()
        if chunk is None:
            raise StopIteration
        return chunk

    def read(self) -> Speech:
        """All the audio that is left, joined; blocks until the end."""
        return self._joined([chunk for chunk in self])

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AudioChunk:
        work, registry = self._work, self._registry
        if work.listener is not None:
            raise UsageError("Another task is waiting for this utterance already; it has one consumer at a time.")
        arrived = asyncio.Event()
        loop = asyncio.get_running_loop()
        work.listener = _notifier(loop, arrived)
        try:
            while not self._wanted():
                seen = registry.progress
                try:
                    async with asyncio.timeout(registry.options.stall_timeout_s):
                        await arrived.wait()
                except TimeoutError:
                    if registry.progress == seen:
                        with registry.lock:
                            self._stalled()
                arrived.clear()
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            work.listener = None
            work.wanted = False
        with registry.lock:
            chunk = self._pop()
        registry.talker_signal.set()
        if chunk is None:
            raise StopAsyncIteration
        return chunk

    async def aread(self) -> Speech:
        """`read` for asyncio."""
        return self._joined([chunk async for chunk in self])

    async def aclose(self) -> None:
        self.close()

    # ---- inside

    def _ready(self) -> bool:
        return len(self._work.ring) > 0 or self._work.ended

    def _wanted(self) -> bool:
        """Whether there is something to take; if not, the engine is told that somebody waits."""
        with self._registry.lock:
            ready = self._ready()
            self._registry.want(self._work, not ready)
            return ready

    def _stalled(self) -> None:
        """Under the lock: end the utterance, because neither worker has finished anything for the whole time-out."""
        timeout = self._registry.options.stall_timeout_s
        self._work.close("error", SynthesisError(f"No audio came for {timeout:g} s; the utterance was ended."))
        self._registry.sweep()
        self._registry.wake()

    def _pop(self) -> AudioChunk | None:
        """Under the lock: the next chunk, None at the end; raises the utterance's error once what came before it was taken."""
        if self._work.abandoned:  # cancelled by a signal handler
            self._work.close("cancelled")
        chunk = self._work.ring.pop()
        self._registry.taken(self._work)
        if chunk is None:
            if self._work.error is not None:
                raise self._work.error
            return None
        if chunk.index != self._due:
            raise SynthesisError(f"Audio chunk {chunk.index} was delivered where {self._due} was due: samples were lost.")
        self._due += 1
        return chunk

    def _joined(self, chunks: list[AudioChunk]) -> Speech:
        samples = [chunk.samples for chunk in chunks]
        joined = np.concatenate(samples) if samples else np.zeros(0, dtype=np.float32)
        return Speech(joined, self.sample_rate, self.finish_reason or "cancelled", self.metrics, self.seed)


def _abandon(work: Work, registry: Registry) -> None:
    """Called by the garbage collector, at any point of any thread: no lock may be taken here."""
    if not work.ended:
        work.abandoned = True
        registry.wake()


def _notifier(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> Callable[[], None]:
    """Sets `event` from any thread. Weak, for behind the event are the waiting task and with it the utterance, and those may be
    dropped: by a loop that was closed without cancelling its tasks."""
    to_loop, to_event = weakref.ref(loop), weakref.ref(event)

    def notify() -> None:
        running, waiting = to_loop(), to_event()
        if running is not None and waiting is not None and not running.is_closed():
            try:
                running.call_soon_threadsafe(waiting.set)
            except RuntimeError:  # the loop was closed in between; its consumer is gone and finalisation cancels the utterance
                return

    return notify
