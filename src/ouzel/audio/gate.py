"""When may playback start so that it need not stop again? And, afterwards, when could it have started?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Arrival = tuple[float, float]
"""(seconds on the caller's clock, seconds of audio in the chunk)"""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is believed about the chunks still to come.

    rtf: wall seconds spent a second of audio, talker and decoder together.
    next_chunk_s: audio in the next chunk; 0 if the schedule fits chunks to the buffer by itself (`auto`).
    remaining_s: audio still to come, None if unknown.
    """

    rtf: float
    next_chunk_s: float = 0.0
    remaining_s: float | None = None


class PlaybackGate:
    """Holds the first sample until no later deficit is foreseen. Feed it every arrival; it keeps no clock.

    With B seconds received and the last chunk at time t, an outlook (rtf q, chunks of g seconds, R seconds to come) puts
    the j-th next chunk at t + q·g·j, when B + g·(j - 1) must not have been played up: start >= t + q·g·j - B - g·(j - 1).
    For q <= 1 the next chunk (j = 1) decides; for q > 1 the last one does, t + q·R - B - R + g, so R must be known. Otherwise
    playback waits for the end, or for `max_hold_s` after the first arrival where a late start is worse than a gap.
    """

    def __init__(self, *, margin_s: float = 0.0, max_hold_s: float | None = None) -> None:
        self._margin = margin_s
        self._max_hold = max_hold_s
        self._arrivals: list[Arrival] = []
        self._received = 0.0
        self._ended = False

    @property
    def received_s(self) -> float:
        """Seconds of audio so far."""
        return self._received

    @property
    def arrivals(self) -> Sequence[Arrival]:
        """Every chunk so far, as fed."""
        return tuple(self._arrivals)

    def arrived(self, now_s: float, seconds: float, *, last: bool = False) -> None:
        """A chunk of `seconds` is at hand. Raises ValueError if time runs backwards or the end has passed."""
        if self._ended or seconds < 0 or (self._arrivals and now_s < self._arrivals[-1][0]):
            raise ValueError(f"unexpected arrival of {seconds} s at {now_s} s")
        self._arrivals.append((now_s, seconds))
        self._received += seconds
        self._ended = last

    def measured_rtf(self) -> float | None:
        """Wall seconds a second of audio between the first and the latest arrival; None before the second chunk."""
        later = sum(seconds for _, seconds in self._arrivals[1:])
        if later <= 0:
            return None
        return (self._arrivals[-1][0] - self._arrivals[0][0]) / later

    def earliest_start(self, outlook: Outlook | None = None) -> float | None:
        """Clock time, possibly past, from which playback can run through; None while no start is safe.

        Without an outlook the measured speed and the latest chunk's length stand in for it.
        """
        start = uninterrupted_latency(self._arrivals)  # what is here already must not have a hole of its own
        if start is None:
            return None
        first = self._arrivals[0][0]
        if not self._ended:
            projected = self._projected(outlook or self._own_outlook(), self._arrivals[-1][0])
            start = None if projected is None else max(start, projected)
        if self._max_hold is not None:
            limit = first + self._max_hold
            start = limit if start is None else min(start, limit)
        return start

    def may_start(self, now_s: float, outlook: Outlook | None = None) -> bool:
        """True once `now_s` has reached the earliest start."""
        start = self.earliest_start(outlook)
        return start is not None and now_s >= start

    def _own_outlook(self) -> Outlook | None:
        rtf = self.measured_rtf()
        return None if rtf is None else Outlook(rtf, self._arrivals[-1][1])

    def _projected(self, outlook: Outlook | None, latest: float) -> float | None:
        if outlook is None:
            return None
        chunk, remaining = outlook.next_chunk_s, outlook.remaining_s
        if remaining is not None:
            chunk = min(chunk, remaining)
        start = latest + outlook.rtf * chunk - self._received
        if outlook.rtf > 1:
            if remaining is None:
                return None
            start = max(start, latest + outlook.rtf * remaining - self._received - (remaining - chunk))
        return start + self._margin


def deficits(arrivals: Iterable[Arrival]) -> list[float]:
    """For each chunk: (t_i - t_0) - seconds received before it, the deficit of a player that starts at once (contract 9.2)."""
    result: list[float] = []
    origin, received = None, 0.0
    for time, seconds in arrivals:
        origin = time if origin is None else origin
        result.append((time - origin) - received)
        received += seconds
    return result


def uninterrupted_latency(arrivals: Sequence[Arrival], origin_s: float = 0.0) -> float | None:
    """Smallest wait after `origin_s` with which playback would have had no gap: TTFA + worst deficit. None without audio."""
    heard = [(time, seconds) for time, seconds in arrivals if seconds > 0]
    if not heard:
        return None
    return heard[0][0] - origin_s + max(0.0, *deficits(heard))
