"""`auto` against simulated machines: no gap, the smallest start, and sense when reality differs from the estimate."""

from itertools import product

import pytest

from ouzel.schedule import (
    FRAME_MS,
    ScheduleSpec,
    SpeedEstimator,
    SpeedModel,
    first_chunk,
    plan_sizes,
    projected_rtf,
    smallest_sustained_chunk,
)
from schedule_machine import speak

DECODERS = [(0, 0), (5, 3), (20, 10), (60, 3), (60, 20), (150, 0)]  # (ms a call, ms a frame)
EXACT = ScheduleSpec("auto", safety_margin_ms=0)
LONG = 400


def sustainable(frame_ms: float, decoder: tuple[float, float]) -> SpeedModel | None:
    speed = SpeedModel(frame_ms, *decoder)
    return speed if smallest_sustained_chunk(speed, 25) else None


MACHINES = [speed for ms, decoder in product(range(8, 80, 3), DECODERS) if (speed := sustainable(ms, decoder))]
MACHINES += [SpeedModel(79), SpeedModel(79, 1), SpeedModel(70, 25, 9)]


def can_start(first: int, speed: SpeedModel, chunk: int) -> bool:
    """Exhaustive: whether any chunk sizes at all run gap-free for ever behind `first`. A state is the ms until a chunk is due."""
    slacks, seen = {FRAME_MS * first}, set()
    while slacks:
        slack = slacks.pop()
        if slack >= speed.chunk_ms(chunk) and FRAME_MS * chunk >= speed.chunk_ms(chunk):
            return True
        for size in range(1, chunk + 1):
            if speed.chunk_ms(size) > slack:
                break
            after = slack - speed.chunk_ms(size) + FRAME_MS * size
            if after == slack:  # the same chunk again and again
                return True
            if after not in seen:
                seen.add(after)
                slacks.add(after)
    return False


def test_the_grid_covers_slow_and_fast_machines():
    assert len(MACHINES) > 100
    assert {first_chunk(speed, 25, 0) for speed in MACHINES} >= {1, 2, 3, 4, 8}


@pytest.mark.parametrize("serial", [True, False], ids=["turns", "parallel"])
@pytest.mark.parametrize("margin", [0, 50])
def test_no_gap_and_the_planned_start(serial, margin):
    spec = ScheduleSpec("auto", safety_margin_ms=margin)
    for speed in MACHINES:
        run = spec.start(speed=speed)
        worst = max(speak(run, speed, LONG, serial=serial))
        assert worst <= 1e-6, (speed, run.sizes)
        assert run.sizes[0] == first_chunk(speed, 25, margin), speed
        assert max(run.sizes) <= max(25, run.sizes[0])


def test_the_start_is_minimal_whatever_sizes_follow():
    for speed in MACHINES:
        if speed.frame_ms > 75 or speed.per_frame_ms > 75:
            continue  # the exhaustive search grows with 1 / (80 - cost); the plan below covers these
        first = first_chunk(speed, 12, 0)
        if smallest_sustained_chunk(speed, 12):
            assert can_start(first, speed, 12), speed
            assert not can_start(first - 1, speed, 12), speed


def test_one_frame_less_would_gap():
    for speed in MACHINES:
        first = first_chunk(speed, 25, 0)
        assert plan_sizes(speed, 25, 0, first, 20_000) is not None, speed
        if first > 1:  # where a chunk loses only a millisecond or two, the gap takes its time
            assert plan_sizes(speed, 25, 0, first - 1, 20_000) is None, speed


def test_a_margin_keeps_every_chunk_early():
    for speed in MACHINES:
        run = ScheduleSpec("auto", safety_margin_ms=120).start(speed=speed)
        assert max(speak(run, speed, LONG, serial=True)[1:]) <= -120 + 1e-6


def test_chunks_grow_to_the_chunk_size_when_there_is_room():
    run = EXACT.start(speed=SpeedModel(30, 10, 5))
    speak(run, SpeedModel(30, 10, 5), 150, serial=True)
    assert run.sizes[0] == 1
    assert run.sizes[1:6] == sorted(run.sizes[1:6])
    assert 25 in run.sizes


@pytest.mark.parametrize("speed", [SpeedModel(90), SpeedModel(70, 100, 8), SpeedModel(120, 20, 30)])
@pytest.mark.parametrize("frames", [30, 120, 300])
def test_slower_than_real_time_with_a_known_length(speed, frames):
    assert smallest_sustained_chunk(speed, 25) is None
    first = first_chunk(speed, 25, 0, frames)
    run = EXACT.start(speed=speed, expected_frames=frames)
    assert max(speak(run, speed, frames, serial=True)) <= 1e-6
    assert run.sizes[0] == first < frames
    assert plan_sizes(speed, 25, 0, first - 1, frames) is None


def test_slower_than_real_time_without_a_length_saves_decode_calls():
    run = EXACT.start(speed=SpeedModel(120, 20, 10))
    assert max(speak(run, SpeedModel(120, 20, 10), 110, serial=True)) > 0
    assert run.sizes == [25, 25, 25, 25, 10]


def test_a_slow_start_waits_for_more():
    """The model says 30 ms a frame, this run makes one in 60: the start must follow the run."""
    believed, real = SpeedModel(30, 60, 5), SpeedModel(60, 60, 5)
    run = EXACT.start(speed=believed)
    assert max(speak(run, real, 200, serial=True)) <= 1e-6
    assert run.sizes[0] > first_chunk(believed, 25, 0)


def test_a_hiccup_within_the_buffer_is_not_heard():
    speed = SpeedModel(40, 10, 6)
    run = ScheduleSpec("auto", safety_margin_ms=250).start(speed=speed)
    assert max(speak(run, speed, 200, serial=True, late={9: 200.0, 60: 200.0})) <= 1e-6


def test_after_a_gap_the_start_rule_applies_again():
    """A stall of a second runs the buffer dry once; behind it no chunk is late against the new start of playback."""
    speed = SpeedModel(56, 60, 6)
    run = EXACT.start(speed=speed)
    late = speak(run, speed, 300, serial=True, late={20: 1000.0})
    stalled = next(i for i, deficit in enumerate(late) if deficit > 0)
    assert max(late) <= late[stalled] + 1e-6


def test_after_a_gap_chunks_grow_again():
    run = EXACT.start(speed=SpeedModel(30, 10, 5))
    assert max(speak(run, SpeedModel(30, 10, 5), 200, serial=True, late={40: 5000.0})) > 1000
    assert run.sizes[-3:-1] == [25, 25]


def test_without_an_estimate_it_starts_with_two_and_grows_gently():
    run = ScheduleSpec("auto").start()
    speak(run, SpeedModel(10), 120, serial=False)
    assert run.sizes[:8] == [2, 3, 4, 5, 6, 8, 10, 13]
    assert max(run.sizes) <= 25


def test_without_an_estimate_a_thin_buffer_ships_early():
    run = ScheduleSpec("auto").start()
    assert max(speak(run, SpeedModel(70), 120, serial=False)) <= 1e-6


def test_a_newer_estimate_is_taken_over():
    speed = SpeedModel(20, 40, 5)
    run = EXACT.start()
    run.offer(1, 20.0)
    run.learn(SpeedModel(20, 300, 50))
    assert run.offer(2, 40.0) == 0
    run.learn(speed)
    assert run.offer(3, 60.0) == 3


@pytest.mark.parametrize(("asked", "first"), [(4, 4), (0, 25), (40, 25)])
def test_the_request_may_choose_the_start(asked, first):
    run = ScheduleSpec("auto").start(request_initial=asked, speed=SpeedModel(20))
    speak(run, SpeedModel(20), 60, serial=True)
    assert run.sizes[0] == first


def test_a_pause_is_not_slowness():
    """Paused for 30 s by a full sink: the very next chunks keep their size."""
    speed = SpeedModel(20, 10, 5)
    run, now = EXACT.start(speed=speed), 0.0
    for frame in range(1, 301):
        now += 20.0
        if frame == 140:
            now += 30_000.0
            run.paused(30_000.0)
        run.offer(frame, now)
    assert run.sizes[-8:] == [25] * 8


def test_playback_goes_on_during_a_pause():
    """Behind a pause one chunk's worth of audio counts as left, not the seconds that were there before it."""
    run, now, after = EXACT.start(speed=SpeedModel(20)), 0.0, []
    for frame in range(1, 201):
        now += 20.0 if frame <= 150 else 200.0
        if frame == 150:
            now += 9000.0
            run.paused(9000.0)
        count = run.offer(frame, now)
        if count and frame > 150:
            after.append(count)
    assert after[0] < 25  # the talker has become slow: 25 frames take 5 s, and only 2 s of audio are left


def test_projected_rtf_is_one_where_a_chunk_just_pays_for_itself():
    assert projected_rtf(SpeedModel(70, 50, 5), 10) == pytest.approx(1.0)
    assert projected_rtf(SpeedModel(70, 50, 5), 25) < 1.0 < projected_rtf(SpeedModel(70, 50, 5), 9)


def test_estimator_separates_call_and_frame_cost():
    estimator = SpeedEstimator()
    assert estimator.model() is None
    for _ in range(50):
        estimator.add_talker(1, 40.0)
    assert estimator.model() is None
    for frames in (2, 4, 9, 25, 25, 25):
        estimator.add_decode(frames, 12.0 + 6.0 * frames)
    model = estimator.model()
    assert model is not None
    assert (model.frame_ms, model.decode_call_ms, model.decode_frame_ms) == pytest.approx((40.0, 12.0, 6.0))


def test_estimator_halves_the_cost_while_all_calls_are_alike():
    estimator = SpeedEstimator()
    estimator.add_talker(4, 100.0)
    estimator.add_decode(10, 100.0)
    estimator.add_decode(10, 100.0)
    assert estimator.model() == SpeedModel(25.0, 50.0, 5.0)


@pytest.mark.parametrize("times", [(100.0, 10.0), (5.0, 500.0)])
def test_estimator_never_reports_negative_costs(times):
    estimator = SpeedEstimator()
    estimator.add_talker(1, 10.0)
    for frames, ms in zip((2, 20), times, strict=True):
        estimator.add_decode(frames, ms)
    model = estimator.model()
    assert model is not None
    assert min(model.decode_call_ms, model.decode_frame_ms) >= 0


def test_estimator_follows_a_change_of_speed():
    estimator = SpeedEstimator()
    for ms in [20.0] * 30 + [60.0] * 60:
        estimator.add_talker(1, ms)
        estimator.add_decode(5, ms)
    model = estimator.model()
    assert model is not None
    assert model.frame_ms == pytest.approx(60.0, rel=0.01)
    assert model.decode_ms(5) == pytest.approx(60.0, rel=0.01)


def test_impossible_measurements_are_refused():
    for call in (lambda: SpeedModel(0), lambda: SpeedModel(1, -1), lambda: SpeedEstimator().add_talker(0, 1)):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(ValueError):
        SpeedEstimator().add_decode(1, -1)
