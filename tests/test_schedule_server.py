"""Fixed, ramp and adaptive: the contract's figures (3.3 to 3.6). The server itself is compared in test_processors."""

import pytest

from ouzel.errors import UsageError
from ouzel.schedule import ScheduleRun, ScheduleSpec
from ouzel.schedule.fixed import dynamic_initial


def spoken(run: ScheduleRun, frames: int, ms: float = 20.0) -> list[int]:
    """Sizes of an utterance that makes a frame every `ms` and ends one step behind its last frame."""
    for frame in range(1, frames + 1):
        run.offer(frame, frame * ms)
    run.offer(frames, (frames + 1) * ms, finished=True)
    return run.sizes


@pytest.mark.parametrize(
    ("spec", "frames", "sizes"),
    [
        ("fixed:1/25", 80, [1, 25, 25, 25, 4]),
        ("fixed:10/25", 60, [10, 25, 25]),
        ("fixed:8/16", 24, [8, 16]),
        ("fixed:5/25", 30, [5, 25]),
        ("fixed:25/25", 60, [25, 25, 10]),
        ("ramp:4,4,8,16,25", 107, [4, 4, 8, 16, 25, 25, 25]),
        ("ramp:4,4,8,16,25", 11, [4, 4, 3]),
        ("ramp:2,3/5", 20, [2, 3, 5, 5, 5]),
        ("full", 300, [300]),
    ],
)
def test_sizes(spec, frames, sizes):
    assert spoken(ScheduleSpec.parse(spec).start(), frames) == sizes


@pytest.mark.parametrize(
    ("chunk", "capacity", "initials"),
    [
        (25, 8, [2, 2, 4, 4, 8, 8, 8, 16, 16]),
        (16, 8, [2, 2, 2, 4, 4, 4, 8, 8, 8]),
        (8, 8, [2, 2, 2, 2, 2, 4, 4, 4, 4]),
        (50, 8, [2, 2, 4, 8, 8, 8, 16, 32, 32]),
        (25, 1, [2, 16]),
        (25, 0, [2, 2]),
        (2, 8, [1, 1]),
        (1, 8, [1, 1]),
    ],
)
def test_first_chunk_by_load(chunk, capacity, initials):
    assert [dynamic_initial(chunk, active, capacity) for active in range(len(initials))] == initials


@pytest.mark.parametrize(
    ("ms", "sizes"),
    [
        (8, [2, 4, 25, 25, 25, 25, 14]),
        (16, [2, 4, 11, 25, 25, 25, 25, 3]),
        (40, [2, 4, 6, 8, 10, 25, 25, 25, 15]),
        (56, [2, 4, 7, 10, 13, 16, 19, 25, 24]),
        (64, [2, 4, 8, 12, 16, 20, 24, 25, 9]),
        (80, [2, 4, 9, 14, 19, 24, 25, 23]),
        (120, [2, 4, 12, 20, 25, 25, 25, 7]),
    ],
)
def test_adaptive_golden_vectors(ms, sizes):
    assert spoken(ScheduleSpec.parse("adaptive").start(), 120, ms) == sizes


def test_adaptive_does_not_take_a_pause_for_slowness():
    def run(gap_ms: float, paused_ms: float) -> list[int]:
        schedule, now = ScheduleSpec.parse("adaptive").start(), 0.0
        for frame in range(1, 121):
            now += 16.0
            if frame == 5:
                now += gap_ms
                if paused_ms:
                    schedule.paused(paused_ms)
            schedule.offer(frame, now)
        return schedule.sizes

    assert run(900.0, 900.0) == run(0.0, 0.0)
    assert run(900.0, 0.0) != run(0.0, 0.0)


def test_request_decides_over_the_configured_initial():
    spec = ScheduleSpec.parse("fixed:1/25")
    assert spoken(spec.start(request_initial=10), 40) == [10, 25, 5]
    assert spoken(spec.start(request_initial=0), 60) == [25, 25, 10]
    assert spoken(spec.start(request_initial=99), 60) == [25, 25, 10]


@pytest.mark.parametrize("spec", ["ramp:4,8,25", "adaptive", "full"])
def test_the_others_ignore_the_request(spec):
    spec = ScheduleSpec.parse(spec)
    assert spoken(spec.start(request_initial=7), 50) == spoken(spec.start(), 50)


def test_negative_request_is_refused():
    with pytest.raises(UsageError, match="initial_codec_chunk_frames"):
        ScheduleSpec().start(request_initial=-1)


def test_load_chooses_the_first_chunk_where_none_is_configured():
    spec = ScheduleSpec.parse("fixed")
    assert spoken(spec.start(active=0, max_num_seqs=64), 30)[0] == 2
    assert spoken(spec.start(active=64, max_num_seqs=64), 30)[0] == 16


def test_a_missed_boundary_holds_nothing_back():
    run = ScheduleSpec.parse("fixed:1/25").start()
    assert run.offer(30, 0.0) == 26
    assert run.offer(50, 1.0) == 0
    assert run.offer(51, 2.0) == 25


def test_nothing_new_ships_nothing_even_at_the_end():
    run = ScheduleSpec.parse("fixed:1/25").start()
    assert [run.offer(1, 0.0), run.offer(1, 1.0), run.offer(1, 2.0, finished=True)] == [1, 0, 0]


def test_a_run_refuses_to_go_backwards_or_past_its_end():
    run = ScheduleSpec().start()
    run.offer(5, 0.0)
    with pytest.raises(ValueError, match="4 frames after 5"):
        run.offer(4, 1.0)
    run.offer(5, 1.0, finished=True)
    with pytest.raises(ValueError, match="the end"):
        run.offer(6, 2.0)
    with pytest.raises(ValueError, match="pause"):
        run.paused(-1)
