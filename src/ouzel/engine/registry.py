"""Who is alive: the utterances of an engine, whose turn it is, and how the workers are woken."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ouzel.engine.options import EngineOptions
from ouzel.engine.signal import Signal
from ouzel.engine.work import DecodeJob, Work
from ouzel.errors import ClosedError, UsageError


@dataclass(frozen=True, slots=True)
class Live:
    """A snapshot for leak checks: everything is 0 when nothing is being spoken.

    states: utterances that reference a talker state, decoder state, schedule run or queued frames.
    jobs: lots of frames queued for the decoder. ring_seconds: decoded audio of living utterances that nobody took yet.
    """

    waiting: int
    active: int
    states: int
    jobs: int
    ring_seconds: float
    in_workers: int

    @property
    def empty(self) -> bool:
        return self == Live(0, 0, 0, 0, 0.0, 0)


class Registry:
    """All methods but `close_soon` and `wake` need `lock` held. A work leaves when it has ended and no worker has it."""

    def __init__(self, options: EngineOptions, frame_seconds: float, clock: Callable[[], float]) -> None:
        self.options = options
        self.frame_seconds = frame_seconds
        self.clock = clock
        self.lock = threading.Lock()
        self.idle = threading.Condition(self.lock)
        self.talker_signal = Signal()
        self.decoder_signal = Signal()
        self.closing = False
        self._waiting: deque[Work] = deque()
        self._active: deque[Work] = deque()
        self._ticks = 0
        self.progress = 0  # turns that a worker has done

    # ---- life

    def add(self, work: Work) -> None:
        if self.closing:
            raise ClosedError("The voice is closed; load it again to speak.")
        self.sweep()  # what was abandoned must not keep anyone out
        if len(self._waiting) >= self.options.max_waiting:
            raise UsageError(
                f"{len(self._active)} utterances are being spoken and {len(self._waiting)} wait already (max_waiting): "
                "wait for one to end, or cancel some."
            )
        self._waiting.append(work)

    def sweep(self) -> None:
        """End what was abandoned, let go of what has ended, admit who waits."""
        for work in (*self._waiting, *self._active):
            if work.abandoned or self.closing:
                work.close("cancelled", ClosedError("The voice was closed while it was speaking.") if self.closing else None)
        self._waiting = deque(work for work in self._waiting if not work.ended)
        self._active = deque(work for work in self._active if not work.ended or work.in_talker or work.in_decoder)
        while self._waiting and len(self._active) < self.options.max_active:
            self._active.append(self._waiting.popleft())
        if not self._waiting and not self._active:
            self.idle.notify_all()

    def close_soon(self) -> None:
        """Ask the workers to end everything and leave; takes no lock, so a finaliser may call it."""
        self.closing = True
        self.wake()

    def wake(self) -> None:
        self.talker_signal.set()
        self.decoder_signal.set()

    def fail_all(self, error: BaseException) -> None:
        """A worker broke down: nobody may wait for it."""
        self.closing = True
        for work in (*self._waiting, *self._active):
            work.close("error", error)

    # ---- turns

    def talker_turn(self) -> list[Work]:
        """Up to `step_batch` works of one talker that a step may advance, or one whose prompt must be run.

        The others come first next time.
        """
        turn: list[Work] = []
        for work in tuple(self._active):
            if work.ended or work.talked or self._unsettled(work) or self._held(work):
                continue
            if work.talker_state is None:
                if turn:
                    continue
                turn.append(work)
                break
            if turn and turn[0].stages is not work.stages:
                continue
            turn.append(work)
            if len(turn) >= self.options.step_batch:
                break
        if not turn:
            self._admit_wanted(turn)
        for work in turn:
            work.in_talker = True
            self._active.remove(work)
            self._active.append(work)
        return turn

    def want(self, work: Work, wanted: bool) -> None:
        """Whether somebody waits for the next chunk of `work`."""
        work.wanted = wanted
        if wanted and work in self._waiting:
            self.talker_signal.set()

    def taken(self, work: Work) -> None:
        """A consumer took a chunk: a pause ends here, not when the talker comes round to it."""
        if work.ring.seconds <= self.options.high_water_s:
            self._resume(work)

    def _admit_wanted(self, turn: list[Work]) -> None:
        """While every active work is paused for a listener, the listener may be waiting for one that is not: speak it besides."""
        if all(work.held_since is not None and not work.ended for work in self._active):
            for work in self._waiting:
                if work.wanted:
                    self._waiting.remove(work)
                    self._active.append(work)
                    turn.append(work)
                    return

    def decoder_turn(self) -> tuple[Work, DecodeJob] | None:
        """The next job, of the work that decoded longest ago."""
        ready = [work for work in self._active if work.jobs and not work.ended]
        if not ready:
            return None
        work = min(ready, key=lambda w: w.decoder_turn)
        self._ticks += 1
        work.decoder_turn = self._ticks
        work.in_decoder = True
        return work, work.jobs.popleft()

    def talking_with_frames(self, besides: Work) -> int:
        """Other works that hold frames: `active` of contract 3.3, without the current one."""
        return sum(1 for work in self._active if work is not besides and not work.talked and work.produced > 0)

    def _unsettled(self, work: Work) -> bool:
        """Whether a next segment's share of `max_frames` is not known yet: it is what the audio before it has left over."""
        return work.max_frames is not None and work.talker_state is None and work.segment > work.settled

    def _held(self, work: Work) -> bool:
        """Backpressure: whether the listener, or the decoder, has enough in front of it.

        Time spent for the listener is not slowness; a decoder that is behind is.
        """
        high = self.options.high_water_s
        if work.ring.seconds > high:
            if work.held_since is None:
                work.held_since = self.clock()
            return True
        self._resume(work)
        return work.backlog * self.frame_seconds > high

    def _resume(self, work: Work) -> None:
        if work.held_since is not None:
            paused = self.clock() - work.held_since
            work.held_since = None
            work.recorder.paused(paused)
            if work.run is not None:
                work.run.paused(paused * 1000.0)

    # ---- view

    def live(self) -> Live:
        works = (*self._waiting, *self._active)
        return Live(
            waiting=len(self._waiting),
            active=len(self._active),
            states=sum(work.holds_state for work in works),
            jobs=sum(len(work.jobs) for work in works),
            ring_seconds=sum(work.ring.seconds for work in works),
            in_workers=sum(work.in_talker or work.in_decoder for work in works),
        )
