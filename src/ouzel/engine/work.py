"""Everything of one utterance, in one object with one way out."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import Codes
from ouzel.audio.ring import ChunkRing
from ouzel.engine.metrics import MetricsRecorder
from ouzel.engine.segment import Segment
from ouzel.engine.stages import Stages
from ouzel.engine.stuck import RepeatDetector, SilenceDetector, StuckPolicy
from ouzel.schedule import ScheduleRun, ScheduleSpec

SEVERITY = {"stop": 0, "length": 1, "stuck": 2}  # of several segments the worst end is reported


@dataclass(frozen=True, slots=True)
class DecodeJob:
    """Frames on their way to the decoder.

    first: index in its segment of the first frame. last: nothing of this segment follows; such a job may have no frames.
    """

    generation: int
    segment: int
    first: int
    codes: tuple[NDArray[np.int64], ...]
    last: bool

    def stacked(self) -> Codes:
        return np.stack(self.codes)


class Work:
    """One utterance as the engine sees it; the user holds an `Utterance` that points here.

    All fields are guarded by the engine's lock, except that `abandoned` may be set by a finaliser without it, and that the
    talker thread owns the talker fields, the decoder thread the decoder fields, while the generation they noted is still current.
    The complete list (contract 7): talker state with its trailing rows, sampler history and generator; frames not shipped;
    schedule run; stages; decode jobs; decoder state; detectors; fade position; chunk index and ring; metrics.
    """

    def __init__(
        self,
        segments: Sequence[Segment],
        *,
        stages: Stages,
        lock: threading.Lock,
        schedule: ScheduleSpec,
        initial_chunk: int | None,
        max_frames: int | None,
        stuck: StuckPolicy,
        recorder: MetricsRecorder,
    ) -> None:
        self.segments = tuple(segments)
        self.stages: Stages | None = stages  # None at the end: what was moved away from is let go with its last utterance
        self.schedule = schedule
        self.initial_chunk = initial_chunk
        self.max_frames = max_frames  # of the whole utterance
        self.stuck = stuck
        self.recorder = recorder
        self.generation = 0
        self.abandoned = False
        self.ended = False
        self.reason: str | None = None  # worst end of a segment so far; final once `ended`
        self.error: BaseException | None = None
        self.ready = threading.Condition(lock)
        self.listener: Callable[[], None] | None = None
        self.wanted = False  # a consumer waits for its next chunk
        self.in_talker = False
        self.in_decoder = False
        # talker
        self.segment = 0
        self.talked = False
        self.talker_state: Any = None
        self.run: ScheduleRun | None = None
        self.repeats: RepeatDetector | None = None
        self.frames: list[NDArray[np.int64]] = []
        self.produced = 0  # frames of the segment
        self.total = 0  # frames of the utterance
        self.shipped = 0
        self.held_since: float | None = None  # paused for the listener
        # decoder
        self.decoder_turn = 0  # when it last had one; new works come first
        self.jobs: deque[DecodeJob] = deque()
        self.backlog = 0  # frames shipped and not decoded, the ones in the decoder included
        self.cut_segment = -1  # its audio has ended early: later frames of it are dropped
        self.decoder_state: Any = None
        self.decoding = -1
        self.decoded = 0
        self.silence: SilenceDetector | None = None
        self.samples = 0  # of the segment: where the fade is
        self.loudest = 0.0
        self.seconds = 0.0
        self.kept = 0  # frames of the utterance that became audio; less than `total` once a segment was cut
        self.settled = 0  # segments whose last lot was decoded
        # output
        self.chunks = 0
        self.ring = ChunkRing()

    @property
    def holds_state(self) -> bool:
        """Whether a model state or anything queued is still referenced."""
        return (
            self.talker_state is not None
            or self.decoder_state is not None
            or self.run is not None
            or bool(self.frames)
            or bool(self.jobs)
        )

    def tell(self) -> None:
        """Call the listener, if there is one: there is audio, or the end. It must take no lock of the engine and not raise."""
        listener = self.listener
        if listener is not None:
            listener()

    def worsen(self, reason: str) -> None:
        if self.reason is None or SEVERITY[reason] > SEVERITY[self.reason]:
            self.reason = reason

    def close(self, reason: str | None = None, error: BaseException | None = None) -> bool:
        """The one way out, under the lock: drop every state and, on `cancelled` or an error, what is queued.

        reason None keeps the reason found while speaking. Legal at any time and any number of times; True if this call ended
        the work. A finished utterance whose audio nobody has taken can still be cancelled: the audio is dropped and the reason
        becomes "cancelled", unless it is an error.
        """
        if self.ended:
            if reason == "cancelled" and len(self.ring):
                self.ring.clear()
                if self.error is None:
                    self.reason = reason
                    self.recorder_finish()
            return False
        self.ended = True
        self.generation += 1  # whatever is still in a worker's hands belongs to the past now
        self.reason = reason or self.reason
        self.error = error
        self.drop_states()
        if reason == "cancelled":
            self.ring.clear()
        self.recorder_finish()
        self.ready.notify_all()
        self.tell()
        return True

    def drop_states(self) -> None:
        self.stages = None
        self.talker_state = None
        self.run = None
        self.repeats = None
        self.frames.clear()
        self.decoder_state = None
        self.silence = None
        self.jobs.clear()
        self.backlog = 0

    def recorder_finish(self) -> None:
        self.recorder.finish(self.reason or "error")
