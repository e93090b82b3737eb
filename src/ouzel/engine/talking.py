"""The talker thread: prompts and steps, a frame for each utterance in turn, cut into chunks by the schedule."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import Frame
from ouzel.engine.registry import Registry
from ouzel.engine.stages import Stages
from ouzel.engine.stuck import RepeatDetector
from ouzel.engine.work import DecodeJob, Work
from ouzel.errors import OuzelError, SynthesisError
from ouzel.schedule import SpeedEstimator

# 12.5 frames/s over the 4 to 5 text tokens/s that speech consumes. Only `auto` asks, and only on a machine slower than real time.
FRAMES_PER_TOKEN = 3.0


class Talking:
    """`turn` is called by one thread only."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def turn(self) -> bool:
        """Do one prompt or one step; False when there is nothing to do."""
        registry = self._registry
        with registry.lock:
            registry.sweep()
            works = registry.talker_turn()
            noted = [(work, work.generation) for work in works]
            fresh = bool(works) and works[0].talker_state is None
            stages = works[0].stages if works else None
        if not works:
            return False
        try:
            if stages is None:  # the work has ended in the meantime
                return True
            if fresh:
                self._prefill(stages, *noted[0])
            else:
                self._step(stages, noted)
        except Exception as exc:
            self._fail(noted, exc)
        finally:
            with registry.lock:
                for work in works:
                    work.in_talker = False
                registry.progress += 1
                registry.sweep()
        return True

    def _prefill(self, stages: Stages, work: Work, generation: int) -> None:
        registry, segment = self._registry, work.segments[work.segment]
        rows = segment.rows()
        state = stages.talker.prefill(rows, segment.sampling)
        if state is None:
            raise SynthesisError("The talker returned no state for the prompt.")
        with registry.lock:
            if work.generation != generation:
                return
            work.talker_state = state
            work.run = work.schedule.start(
                request_initial=work.initial_chunk,
                # The server settles this at the prompt too, when the new request holds no frame yet and does not count itself.
                active=registry.talking_with_frames(work),
                max_num_seqs=registry.options.max_num_seqs,
                speed=stages.speed.model(),
                expected_frames=(rows.frames or round(FRAMES_PER_TOKEN * rows.text_tokens)) or None,
            )
            frames = round(work.stuck.repeat_seconds / registry.frame_seconds)
            work.repeats = RepeatDetector(frames, work.stuck.max_period) if work.stuck.enabled else None
            work.produced = work.shipped = 0

    def _step(self, stages: Stages, noted: list[tuple[Work, int]]) -> None:
        # A cancel that came since the turn was given out has taken the state away: nothing is stepped for it.
        states = [(work, generation, work.talker_state) for work, generation in noted]
        states = [entry for entry in states if entry[2] is not None]
        if not states:
            return
        began = self._registry.clock()
        frames = stages.talker.step([state for _, _, state in states])
        took = self._registry.clock() - began
        if len(frames) != len(states):
            raise SynthesisError(f"The talker returned {len(frames)} frames for {len(states)} utterances.")
        # A first step has its forward pass in the prefill, a last one makes no frame: neither is what a frame costs.
        if all(work.produced and frame.codes is not None for (work, _, _), frame in zip(states, frames, strict=True)):
            stages.speed.add_talker(1, took * 1000.0 / len(states))
        for (work, generation, _), frame in zip(states, frames, strict=True):
            try:
                with self._registry.lock:
                    if work.generation == generation:
                        self._take(stages, work, frame)
            except Exception as exc:
                self._fail([(work, generation)], exc)

    def _take(self, stages: Stages, work: Work, frame: Frame) -> None:
        finish = frame.finish
        if work.cut_segment == work.segment:  # the decoder heard that this segment is stuck
            work.frames.clear()
            self._end_segment(work, "stuck")
            return
        if frame.codes is None and finish is None:
            raise SynthesisError("The talker returned neither a frame nor a reason to finish.")
        if frame.codes is not None:
            codes = _checked(frame.codes, stages.talker.groups)
            work.frames.append(codes)
            work.produced += 1
            work.total += 1
            work.recorder.first_frame()
            if work.repeats is not None and work.repeats.push(int(codes[0])) and finish is None:
                finish = "stuck"
            if work.total == work.max_frames:
                finish = finish or "length"
        if finish == "length" and work.produced == 0:
            raise SynthesisError("The limit leaves no room for a frame: max_new_tokens counts the end, so it must be 2 or more.")
        if finish is not None and work.produced == 0:
            raise SynthesisError(
                f"The model ended segment {work.segment + 1} of {len(work.segments)} before its first frame: no audio. "
                "Try another seed."
            )
        self._ship(stages.speed, work, finished=finish is not None)
        if finish is not None:
            self._end_segment(work, finish)

    def _ship(self, speed: SpeedEstimator, work: Work, *, finished: bool) -> None:
        if work.run is None:
            raise SynthesisError("A frame arrived for a segment that has no schedule.")
        model = speed.model()
        if model is not None:
            work.run.learn(model)
        n = work.run.offer(work.produced, self._registry.clock() * 1000.0, finished=finished)
        if n < 0 or n > len(work.frames):
            raise SynthesisError(f"The schedule asked for {n} frames of {len(work.frames)}.")
        if n and not finished:
            self._queue(work, n, last=False)

    def _end_segment(self, work: Work, finish: str) -> None:
        """Ship what is left as the segment's last lot, which may be empty, and go on to the next segment."""
        work.worsen(finish)
        self._queue(work, len(work.frames), last=True)
        work.talker_state = None
        work.run = None
        work.repeats = None
        work.segment += 1
        work.talked = work.segment == len(work.segments)

    def _queue(self, work: Work, n: int, *, last: bool) -> None:
        codes = tuple(work.frames[:n])
        del work.frames[:n]
        work.jobs.append(DecodeJob(work.generation, work.segment, work.shipped, codes, last))
        work.shipped += n
        work.backlog += n
        self._registry.decoder_signal.set()

    def _fail(self, noted: list[tuple[Work, int]], exc: Exception) -> None:
        with self._registry.lock:
            for work, generation in noted:
                if work.generation == generation:
                    work.close("error", as_synthesis_error("talker", exc))


def _checked(codes: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    if codes.shape != (groups,):
        raise SynthesisError(f"The talker returned codes of shape {codes.shape}; ({groups},) was due.")
    return np.array(codes, dtype=np.int64)  # a copy: the adapter may reuse its buffer


def as_synthesis_error(stage: str, exc: Exception) -> OuzelError:
    """What the consumer sees when a stage breaks down at work."""
    if isinstance(exc, OuzelError):
        return exc
    error = SynthesisError(f"The {stage} failed: {type(exc).__name__}: {exc}")
    error.__cause__ = exc
    return error
