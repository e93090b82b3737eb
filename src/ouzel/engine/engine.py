"""The engine: one talker thread, one decoder thread, any number of utterances."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from ouzel.adapters import DecoderAdapter, TalkerAdapter
from ouzel.audio.gate import Outlook
from ouzel.engine.decoding import Decoding
from ouzel.engine.metrics import MetricsRecorder
from ouzel.engine.options import EngineOptions
from ouzel.engine.registry import Live, Registry
from ouzel.engine.segment import Segment
from ouzel.engine.signal import Signal
from ouzel.engine.stages import Stages
from ouzel.engine.stuck import StuckPolicy
from ouzel.engine.talking import Talking
from ouzel.engine.utterance import Utterance
from ouzel.engine.work import Work
from ouzel.errors import ClosedError, SynthesisError, UsageError
from ouzel.schedule import FRAME_MS, ScheduleSpec, SpeedEstimator

_JOIN_TIMEOUT_S = 60.0  # a step or decode call that is still running after this long has hung


class Engine:
    """Speaks prompt rows with a talker and a decoder.

    schedule: the default chunk schedule. speed: shared with whoever plans by it. clock: seconds, monotonic; injectable for tests.
    """

    def __init__(
        self,
        talker: TalkerAdapter,
        decoder: DecoderAdapter,
        *,
        schedule: ScheduleSpec | None = None,
        options: EngineOptions | None = None,
        speed: SpeedEstimator | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._stages = Stages(talker, decoder, speed or SpeedEstimator())
        self.schedule = schedule or ScheduleSpec()
        self.options = options or EngineOptions()
        self.sample_rate, self._per_frame = decoder.sample_rate, decoder.samples_per_frame
        self._registry = Registry(self.options, self._per_frame / self.sample_rate, clock)
        decoding = Decoding(self._registry, self.sample_rate, self._per_frame)
        self._threads = [
            self._worker("ouzel-talker", Talking(self._registry).turn, self._registry.talker_signal),
            self._worker("ouzel-decoder", decoding.turn, self._registry.decoder_signal),
        ]
        self._running = len(self._threads)
        self._process = os.getpid()
        # Daemon threads inside native code must not meet the interpreter's end, so an engine that nobody closed is closed
        # before it.
        atexit.register(self.close)
        for thread in self._threads:
            thread.start()

    @property
    def talker(self) -> TalkerAdapter:
        """Of the next utterance."""
        return self._stages.talker

    @property
    def decoder(self) -> DecoderAdapter:
        """Of the next utterance."""
        return self._stages.decoder

    @property
    def speed(self) -> SpeedEstimator:
        """How fast these two were found to be."""
        return self._stages.speed

    def replace(self, stages: Stages) -> None:
        """Speak with others from the next utterance on; those that have begun end with what they began with.

        UsageError when the decoder makes audio of another kind, ClosedError after `close`.
        """
        if self._registry.closing:
            raise ClosedError("The voice is closed; load it again to speak.")
        self._check(stages)
        self._stages = stages

    def _check(self, stages: Stages) -> None:
        decoder = stages.decoder
        if (decoder.sample_rate, decoder.samples_per_frame) != (self.sample_rate, self._per_frame):
            raise UsageError(
                f"A decoder of {decoder.sample_rate} Hz and {decoder.samples_per_frame} samples a frame cannot take the place of "
                f"one of {self.sample_rate} Hz and {self._per_frame}: they are of different models."
            )

    def submit(
        self,
        segments: Sequence[Segment],
        *,
        schedule: ScheduleSpec | None = None,
        initial_chunk: int | None = None,
        max_frames: int | None = None,
        stuck: StuckPolicy | None = None,
        seed: int | None = None,
        stages: Stages | None = None,
    ) -> Utterance:
        """Begin an utterance. Raises UsageError without segments or when too many wait, ClosedError after `close` or a fork.

        initial_chunk: the request's initial_codec_chunk_frames (contract 3.3). max_frames: of all segments together; reaching it
        is finish reason "length". seed: only reported, the segments carry their own. stages: instead of the engine's.
        """
        if not segments:
            raise UsageError("There is nothing to speak: the utterance has no segment.")
        if max_frames is not None and max_frames < 1:
            raise UsageError(f"max_frames must be at least 1, not {max_frames}.")
        if os.getpid() != self._process:  # a fork takes no thread along; waiting for one would never end
            raise ClosedError("The voice belongs to the process that loaded it: load one after the fork, or start by 'spawn'.")
        if stages is not None:
            self._check(stages)
        registry = self._registry
        work = Work(
            segments,
            stages=stages or self._stages,
            lock=registry.lock,
            schedule=schedule or self.schedule,
            initial_chunk=initial_chunk,
            max_frames=max_frames,
            stuck=stuck or self.options.stuck,
            recorder=MetricsRecorder(clock=registry.clock, frame_seconds=registry.frame_seconds),
        )
        utterance = Utterance(work, registry, self.sample_rate, seed)  # first, so that an interrupt leaves nobody without owner
        with registry.lock:
            registry.add(work)
            registry.sweep()
        registry.talker_signal.set()
        return utterance

    def outlook(self, schedule: ScheduleSpec | None = None) -> Outlook | None:
        """What a playback gate may expect of an utterance that begins now; None until a first one was measured."""
        speed, spec = self.speed.model(), schedule or self.schedule
        if speed is None:
            return None
        chunk = spec.chunk_frames
        rtf = (speed.per_frame_ms + speed.decode_call_ms / chunk) / FRAME_MS
        return Outlook(rtf, 0.0 if spec.kind == "auto" else chunk * FRAME_MS / 1000.0)

    def live(self) -> Live:
        """What is alive right now; `live().empty` once all utterances have ended and the workers have let go."""
        with self._registry.lock:
            self._registry.sweep()
            return self._registry.live()

    def wait_idle(self, timeout: float | None = None) -> bool:
        """Wait until nothing is alive; False if the time ran out."""
        with self._registry.lock:
            self._registry.sweep()
            return self._registry.idle.wait_for(lambda: self._registry.live().empty, timeout)

    def close_soon(self) -> None:
        """End everything without waiting for it; safe in a finaliser."""
        self._registry.close_soon()

    def close(self) -> None:
        """End every utterance (their consumers get ClosedError) and join the threads. Idempotent, legal from any thread."""
        registry = self._registry
        if os.getpid() != self._process:  # a forked copy has no thread to end, and its lock may be held by one that is not here
            return
        registry.close_soon()
        with registry.lock:
            registry.sweep()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_JOIN_TIMEOUT_S)
                if thread.is_alive():
                    raise SynthesisError(f"Thread {thread.name} did not come back from the runtime within {_JOIN_TIMEOUT_S:g} s.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _worker(self, name: str, turn: Callable[[], bool], signal: Signal) -> threading.Thread:
        registry = self._registry

        def loop() -> None:
            try:
                while not registry.closing:
                    signal.clear()
                    if not turn() and not registry.closing:
                        signal.wait()
            except BaseException as exc:
                with registry.lock:
                    registry.fail_all(exc)
                raise
            finally:
                with registry.lock:
                    registry.sweep()
                    self._running -= 1
                    last = self._running == 0
                registry.wake()
                if last:  # an engine that was only dropped must not be kept, models and all, until the interpreter ends
                    atexit.unregister(self.close)

        return threading.Thread(target=loop, name=name, daemon=True)
