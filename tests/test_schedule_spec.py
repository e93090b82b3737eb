"""Reading a schedule from flags and deploy files, and what every schedule must hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouzel.errors import ConfigError
from ouzel.schedule import KINDS, ScheduleSpec, SpeedModel


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("fixed", ScheduleSpec("fixed")),
        ("fixed:16", ScheduleSpec("fixed", chunk_frames=16)),
        ("fixed:1/25", ScheduleSpec("fixed", initial_frames=1)),
        (" ramp:4,4,8,16,25 ", ScheduleSpec("ramp", ramp=(4, 4, 8, 16, 25))),
        ("ramp:2,8", ScheduleSpec("ramp", chunk_frames=8, ramp=(2, 8))),
        ("ramp:2,8/25", ScheduleSpec("ramp", chunk_frames=25, ramp=(2, 8))),
        ("adaptive", ScheduleSpec("adaptive")),
        ("auto", ScheduleSpec("auto")),
        ("auto:12", ScheduleSpec("auto", chunk_frames=12)),
        ("full", ScheduleSpec("full")),
    ],
)
def test_parse_and_back(text, spec):
    assert ScheduleSpec.parse(text) == spec
    assert ScheduleSpec.parse(str(spec)) == spec


@pytest.mark.parametrize(
    "text", ["", "fix", "fixed:", "fixed:a", "fixed:1/b", "auto:2/25", "adaptive:2/25", "full:3", "ramp:x,y"]
)
def test_unknown_forms_name_the_valid_ones(text):
    with pytest.raises(ConfigError, match="Valid choices: fixed, fixed:CHUNK, fixed:FIRST/CHUNK"):
        ScheduleSpec.parse(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("fixed:0", "chunk_frames"),
        ("fixed:26/25", "between 0"),
        ("fixed:-1/25", "between 0"),
        ("ramp", "two or more"),
        ("ramp:4", "two or more"),
        ("ramp:4,0,25", "positive"),
        ("auto:-5", "chunk_frames"),
    ],
)
def test_impossible_sizes_are_refused(text, reason):
    with pytest.raises(ConfigError, match=reason):
        ScheduleSpec.parse(text)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"kind": "slow"}, "fixed, ramp, adaptive, auto, full"),
        ({"chunk_frames": 2.5}, "whole number"),
        ({"chunk_frames": True}, "whole number"),
        ({"min_frames": 0}, "min_frames"),
        ({"safety_margin_ms": -1}, "safety_margin_ms"),
        ({"safety_margin_ms": float("nan")}, "safety_margin_ms"),
        ({"kind": "auto", "initial_frames": 3}, "belongs to the fixed schedule"),
        ({"kind": "fixed", "ramp": (4, 25)}, "belongs to the ramp schedule"),
    ],
)
def test_values_that_no_schedule_can_follow(values, reason):
    with pytest.raises(ConfigError, match=reason):
        ScheduleSpec(**values)


def test_connector_precedence_is_adaptive_then_ramp_then_initial():
    values = {"codec_chunk_frames": 20, "initial_codec_chunk_frames": 1, "codec_chunk_ramp": "4, 8,20"}
    spec = ScheduleSpec.from_connector(**values, codec_chunk_adaptive=True, codec_chunk_safety_margin_ms=80)
    assert spec == ScheduleSpec("adaptive", chunk_frames=20, safety_margin_ms=80)
    assert ScheduleSpec.from_connector(**values) == ScheduleSpec("ramp", chunk_frames=20, ramp=(4, 8, 20))
    del values["codec_chunk_ramp"]
    assert ScheduleSpec.from_connector(**values) == ScheduleSpec("fixed", chunk_frames=20, initial_frames=1)
    assert ScheduleSpec.from_connector() == ScheduleSpec("fixed", initial_frames=0)


@pytest.mark.parametrize(
    ("values", "warning"),
    [
        ({"codec_chunk_ramp": [4]}, "stays off"),
        ({"codec_chunk_ramp": "4;8"}, "stays off"),
        ({"codec_chunk_ramp": [4, 0]}, "stays off"),
        ({"codec_chunk_ramp": [4, 8]}, "go on at codec_chunk_frames 25"),
        ({"initial_codec_chunk_frames": 30}, "used instead"),
        ({"codec_chunk_adaptive": True, "codec_chunk_min_frames": 0}, "read as 1"),
        ({"codec_chunk_adaptive": True, "codec_chunk_ramp_divisor": -1}, "read as 1"),
    ],
)
def test_connector_puts_right_what_the_server_puts_right(values, warning, caplog):
    ScheduleSpec.from_connector(**values)
    assert warning in caplog.text


@pytest.mark.parametrize(
    "values", [{"codec_chunk_frames": 0}, {"initial_codec_chunk_frames": -1}, {"codec_chunk_frames": "many"}]
)
def test_connector_refuses_what_the_server_refuses(values):
    with pytest.raises(ConfigError):
        ScheduleSpec.from_connector(**values)


@st.composite
def specs(draw) -> ScheduleSpec:
    kind, chunk = draw(st.sampled_from(KINDS)), draw(st.integers(1, 40))
    initial = draw(st.none() | st.integers(0, chunk)) if kind == "fixed" else None
    ramp = tuple(draw(st.lists(st.integers(1, 30), min_size=2, max_size=6))) if kind == "ramp" else ()
    return ScheduleSpec(kind, chunk, initial, ramp, safety_margin_ms=draw(st.floats(0, 500)))


speeds = st.none() | st.builds(SpeedModel, st.floats(0.5, 300), st.floats(0, 300), st.floats(0, 100))


@given(
    spec=specs(),
    speed=speeds,
    request=st.none() | st.integers(0, 50),
    steps=st.lists(st.tuples(st.integers(0, 7), st.floats(0, 400), st.booleans()), max_size=60),
    end_with_frames=st.integers(0, 3),
    expected=st.none() | st.integers(1, 200),
)
def test_chunks_partition_the_frames(spec, speed, request, steps, end_with_frames, expected):
    run = spec.start(request_initial=request, active=3, max_num_seqs=8, speed=speed, expected_frames=expected)
    frames, now, shipped = 0, 0.0, []
    for more, ms, pause in steps:
        frames, now = frames + more, now + ms
        if pause:
            run.paused(ms)
        shipped.append(run.offer(frames, now))
        assert 0 <= sum(shipped) <= frames
    shipped.append(run.offer(frames + end_with_frames, now, finished=True))
    assert sum(shipped) == frames + end_with_frames
    assert run.sizes == [count for count in shipped if count > 0]
    if spec.kind == "full":
        assert len(run.sizes) <= 1
