"""Streaming figures of one utterance, with the server's definitions (contract 9.2)."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ouzel.audio.gate import Arrival, deficits, uninterrupted_latency
from ouzel.audio.pcm import AudioChunk

CONTINUOUS_S = 0.1  # the server bench's default budget for an inaudible underrun
ONSET_DBFS = -50.0
ONSET_WINDOW_S = 0.01


@dataclass(frozen=True, slots=True)
class UtteranceMetrics:
    """All times in wall seconds, from the request unless said otherwise; None where there was no audio to tell from.

    first_frame_s: first codec frame (prompt and one talker step). ttfa_s: first audio.
    audible_onset_s: when a player that starts at once lets the first 10 ms window above -50 dBFS be heard.
    leading_silence_s: audio before that window. uninterrupted_s: smallest start delay without a gap = ttfa + worst deficit.
    gap_p95_s, gap_max_s: time between consecutive chunks. underrun_s: worst deficit of a player that starts at once;
    underrun_events: chunks that came late. continuous: underrun within 0.1 s.
    rtf: time from the request to the last chunk, without pauses, / audio_s; 0 without audio. rtf_streamed: the same without
    the last chunk. tail_s: from the last chunk but one to the last.
    wall_s: to the end. paused_s: how long the producer stood still because the sink was full; only wall_s includes it.
    cut_s: audio of decoded frames that was not delivered (the tail of a stuck utterance).
    chunk_frames: codec frames of each chunk with audio. finish_reason: "stop", "length", "stuck", "cancelled", "error", …
    """

    first_frame_s: float | None
    ttfa_s: float | None
    audible_onset_s: float | None
    leading_silence_s: float | None
    uninterrupted_s: float | None
    gap_p95_s: float
    gap_max_s: float
    underrun_s: float
    underrun_events: int
    continuous: bool
    rtf: float
    rtf_streamed: float
    tail_s: float
    wall_s: float
    paused_s: float
    audio_s: float
    cut_s: float
    samples: int
    frames: int
    chunk_frames: tuple[int, ...]
    finish_reason: str

    def as_dict(self) -> dict[str, object]:
        """Plain JSON values, times rounded to a tenth of a millisecond."""
        return {name: _plain(value) for name, value in asdict(self).items()}


class MetricsRecorder:
    """Collects the events of one utterance from any thread. `clock` gives seconds; an event may bring its own time instead.

    The request is taken to arrive when the recorder is made, or at `start`. A pause moves all later events forward: a full sink
    makes no underrun, gap or RTF look worse (contract 7), and a stall right behind a pause may look better than it sounded.
    """

    def __init__(self, *, clock: Callable[[], float], frame_seconds: float = 0.08) -> None:
        self._clock = clock
        self._frame_seconds = frame_seconds
        self._lock = threading.Lock()
        self._start = self._latest = clock()
        self._end: float | None = None
        self._reason = "unfinished"
        self._paused = 0.0
        self._first_frame: float | None = None
        self._arrivals: list[Arrival] = []
        self._frames: list[int] = []
        self._samples = 0
        self._cut = 0
        self._onset: _OnsetFinder | None = None

    def start(self, at: float | None = None) -> None:
        """The request arrived now, or at `at`."""
        with self._lock:
            self._start = self._latest = self._now(at)

    def first_frame(self, at: float | None = None) -> None:
        """The talker has made its first frame; later calls change nothing."""
        with self._lock:
            if self._first_frame is None:
                self._first_frame = self._now(at) - self._paused

    def chunk(self, chunk: AudioChunk, at: float | None = None) -> None:
        """A chunk was delivered; an empty one is the end marker and no arrival, as on the server."""
        with self._lock:
            if len(chunk.samples) == 0:
                return
            now = self._latest = self._now(at)
            # A pause is reported when it is over; what the decoder still delivered meanwhile must not seem to come later.
            earliest = self._arrivals[-1][0] if self._arrivals else -math.inf
            self._arrivals.append((max(earliest, now - self._paused), chunk.duration))
            self._frames.append(chunk.frames)
            self._samples += len(chunk.samples)
            if self._onset is None:
                self._onset = _OnsetFinder(chunk.sample_rate)
            self._onset.feed(chunk.samples)

    def paused(self, seconds: float) -> None:
        """The producer has just stood still for `seconds` because the sink was full."""
        with self._lock:
            self._paused += seconds

    def cut(self, frames: int) -> None:
        """`frames` were decoded and withheld."""
        with self._lock:
            self._cut += frames

    def finish(self, reason: str, at: float | None = None) -> None:
        """The utterance is over. The first call sets the time, the last one the reason: finished audio may still be cancelled."""
        with self._lock:
            self._reason = reason
            if self._end is None:
                self._end = self._now(at)

    def snapshot(self) -> UtteranceMetrics:
        """The figures so far; before the end, `finish_reason` is "unfinished" and wall_s runs to the latest chunk."""
        with self._lock:
            arrivals, begin = list(self._arrivals), self._start
            audio = sum(seconds for _, seconds in arrivals)
            late = [max(0.0, deficit) for deficit in deficits(arrivals)]
            gaps = [later[0] - earlier[0] for earlier, later in pairwise(arrivals)]
            active = (arrivals[-1][0] - begin) if arrivals else 0.0
            streamed = arrivals[:-1]
            onset = self._onset.found() if self._onset else None
            return UtteranceMetrics(
                first_frame_s=None if self._first_frame is None else self._first_frame - begin,
                ttfa_s=arrivals[0][0] - begin if arrivals else None,
                audible_onset_s=None if onset is None else _heard_at(arrivals, onset) - begin,
                leading_silence_s=onset,
                uninterrupted_s=uninterrupted_latency(arrivals, begin),
                gap_p95_s=_percentile(gaps, 0.95),
                gap_max_s=max(gaps, default=0.0),
                underrun_s=max(late, default=0.0),
                underrun_events=sum(deficit > 0 for deficit in late),
                continuous=max(late, default=0.0) <= CONTINUOUS_S,
                rtf=active / audio if audio > 0 else 0.0,
                rtf_streamed=(streamed[-1][0] - begin) / sum(s for _, s in streamed) if streamed else 0.0,
                tail_s=gaps[-1] if gaps else 0.0,
                wall_s=(self._latest if self._end is None else self._end) - begin,
                paused_s=self._paused,
                audio_s=audio,
                cut_s=self._cut * self._frame_seconds,
                samples=self._samples,
                frames=sum(self._frames),
                chunk_frames=tuple(self._frames),
                finish_reason=self._reason,
            )

    def _now(self, at: float | None) -> float:
        return self._clock() if at is None else at


class _OnsetFinder:
    """Position of the first 10 ms window with an RMS above the threshold, over chunk borders."""

    def __init__(self, sample_rate: int) -> None:
        self._rate = sample_rate
        self._window = max(1, round(sample_rate * ONSET_WINDOW_S))
        self._floor = 10.0 ** (ONSET_DBFS / 20.0)
        self._rest = np.zeros(0, np.float32)
        self._skipped = 0
        self._onset: float | None = None

    def feed(self, samples: NDArray[np.float32]) -> None:
        if self._onset is not None:
            return
        pending = np.concatenate([self._rest, np.asarray(samples, np.float32)])
        whole = len(pending) // self._window
        rms = _rms(pending[: whole * self._window].reshape(whole, self._window))
        loud = np.flatnonzero(rms > self._floor)
        if len(loud):
            self._onset = (self._skipped + int(loud[0]) * self._window) / self._rate
        self._skipped += whole * self._window
        self._rest = pending[whole * self._window :]

    def found(self) -> float | None:
        """Seconds of audio before the onset; a last window may be shorter than 10 ms."""
        if self._onset is None and len(self._rest) and _rms(self._rest[None])[0] > self._floor:
            return self._skipped / self._rate
        return self._onset


def _rms(windows: NDArray[np.float32]) -> NDArray[np.float64]:
    result: NDArray[np.float64] = np.sqrt(np.mean(np.square(windows, dtype=np.float64), axis=1))
    return result


def _heard_at(arrivals: Sequence[Arrival], position: float) -> float:
    """When a player that starts at once and waits through gaps reaches `position` seconds of audio."""
    cursor, done = arrivals[0][0], 0.0
    for time, seconds in arrivals:
        cursor = max(cursor, time)
        if position < done + seconds:
            return cursor + position - done
        cursor += seconds
        done += seconds
    return cursor


def _percentile(values: Sequence[float], share: float) -> float:
    """Nearest rank: the smallest value that at least `share` of all do not exceed; 0 without values."""
    return sorted(values)[math.ceil(share * len(values)) - 1] if values else 0.0


def _plain(value: object) -> object:
    if isinstance(value, float):
        return round(value, 4)
    return list(value) if isinstance(value, tuple) else value
