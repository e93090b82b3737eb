"""The playback gate, before and after the fact."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouzel.audio.gate import Outlook, PlaybackGate, deficits, uninterrupted_latency


def steady(rtf: float, chunks: list[float], start: float = 0.0) -> list[tuple[float, float]]:
    """Arrivals of chunks of so many seconds, made at `rtf`, the first one being there at `start`."""
    arrivals, now = [], start
    for i, seconds in enumerate(chunks):
        now += rtf * seconds if i else 0.0
        arrivals.append((now, seconds))
    return arrivals


def test_deficits_follow_the_servers_definition():
    """One frame, then 25 that take 0.5 s: 0.42 s of silence after the first 80 ms."""
    assert deficits([(1.0, 0.08), (1.5, 2.0), (2.0, 2.0)]) == pytest.approx([0.0, 0.42, -1.08])


def test_uninterrupted_latency_is_first_audio_plus_the_worst_deficit():
    assert uninterrupted_latency([(1.0, 0.08), (1.5, 2.0)], 0.75) == pytest.approx(0.25 + 0.42)
    assert uninterrupted_latency([(1.0, 2.0), (1.5, 2.0)], 0.75) == pytest.approx(0.25)
    assert uninterrupted_latency([]) is None
    assert uninterrupted_latency([(3.0, 0.0)]) is None


def test_nothing_starts_before_audio_or_before_the_speed_is_known():
    gate = PlaybackGate()
    assert gate.earliest_start(Outlook(0.5, 1.0)) is None
    gate.arrived(1.0, 0.32)
    assert gate.earliest_start() is None
    assert not gate.may_start(100.0)


def test_fast_enough_production_waits_for_the_next_chunk_only():
    gate = PlaybackGate()
    gate.arrived(1.0, 0.08)
    outlook = Outlook(rtf=0.25, next_chunk_s=2.0)
    assert gate.earliest_start(outlook) == pytest.approx(1.0 + 0.5 - 0.08)
    assert not gate.may_start(1.41, outlook)
    assert gate.may_start(1.421, outlook)


def test_a_schedule_that_fits_the_buffer_starts_at_once():
    gate = PlaybackGate()
    gate.arrived(1.0, 0.24)
    assert gate.earliest_start(Outlook(rtf=0.9)) == 1.0


def test_the_margin_delays_the_start():
    gate = PlaybackGate(margin_s=0.05)
    gate.arrived(1.0, 0.5)
    assert gate.earliest_start(Outlook(0.5, 1.0)) == pytest.approx(1.05)


def test_slower_than_real_time_needs_the_length():
    gate = PlaybackGate()
    gate.arrived(0.0, 2.0)
    assert gate.earliest_start(Outlook(1.5, 2.0)) is None
    # 4 s to come at 1.5: all there at 6.0; the last 2 s chunk must be there when 4 s are played, so play from 2.0
    assert gate.earliest_start(Outlook(1.5, 2.0, remaining_s=4.0)) == pytest.approx(2.0)


def test_the_end_opens_the_gate():
    gate = PlaybackGate()
    gate.arrived(0.0, 2.0)
    assert not gate.may_start(8.9, Outlook(5.0, 2.0))
    gate.arrived(9.0, 1.0, last=True)
    assert gate.may_start(9.0, Outlook(5.0, 2.0))
    assert gate.earliest_start() == 7.0  # as is known now
    assert gate.received_s == 3.0


def test_the_measured_speed_stands_in_for_an_outlook():
    gate = PlaybackGate()
    gate.arrived(0.0, 0.5)
    gate.arrived(0.5, 1.0)
    assert gate.measured_rtf() == pytest.approx(0.5)
    assert gate.earliest_start() == pytest.approx(0.0)
    slow = PlaybackGate()
    slow.arrived(0.0, 0.5)
    slow.arrived(1.5, 1.0)
    assert slow.earliest_start() is None


def test_a_held_start_has_a_limit():
    gate = PlaybackGate(max_hold_s=3.0)
    gate.arrived(1.0, 0.5)
    assert gate.earliest_start() == 4.0
    assert gate.earliest_start(Outlook(2.0, 2.0, remaining_s=60.0)) == 4.0


def test_time_does_not_run_backwards_nor_past_the_end():
    gate = PlaybackGate()
    gate.arrived(1.0, 0.5)
    with pytest.raises(ValueError, match="unexpected arrival"):
        gate.arrived(0.9, 0.5)
    gate.arrived(1.0, 0.5, last=True)
    with pytest.raises(ValueError, match="unexpected arrival"):
        gate.arrived(2.0, 0.5)


@given(
    rtf=st.floats(0.05, 3.0),
    chunk=st.floats(0.08, 2.0),
    first=st.floats(0.08, 4.0),
    count=st.integers(1, 30),
    seen=st.integers(1, 5),
)
def test_a_true_outlook_gives_the_smallest_safe_start(rtf, chunk, first, count, seen):
    """Equal chunks at a constant speed: the promise is kept, it is the smallest, and it stays the same as chunks come in."""
    arrivals = steady(rtf, [first] + [chunk] * count)
    gate, start = PlaybackGate(), None
    for done, (now, seconds) in enumerate(arrivals[:seen], 1):
        gate.arrived(now, seconds, last=done == len(arrivals))
        left = (len(arrivals) - done) * chunk
        start = gate.earliest_start(Outlook(rtf, chunk, left))
        assert start is not None
    needed = uninterrupted_latency(arrivals)
    assert start is not None
    assert needed is not None
    assert start >= needed - 1e-6
    assert start == pytest.approx(needed)
