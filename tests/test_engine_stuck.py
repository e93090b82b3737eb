"""Endless speech and room tone are noticed, at a frame that depends on nothing but the frames."""

import numpy as np
import pytest

from ouzel.engine import Engine, EngineOptions, StuckPolicy
from ouzel.engine.stuck import RepeatDetector, SilenceDetector
from ouzel.errors import ConfigError, SynthesisError
from ouzel.schedule import ScheduleSpec
from toys import SPF, ToyDecoder, ToyTalker, segment

FOREVER = 1_000_000
SCHEDULES = ["fixed:1/25", "fixed:1/1", "ramp:1,2,4,8", "auto"]


def read(talker, decoder, schedule, *, segments=None, policy=None, **kw):
    options = EngineOptions(fade_in_s=0.0, stuck=policy or StuckPolicy(), **kw)
    with Engine(talker, decoder, options=options, schedule=ScheduleSpec.parse(schedule)) as engine:
        return engine.submit(segments or [segment("goes on and on")]).read()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("period", [1, 3, 8])
def test_a_repeating_pattern_ends_the_segment_as_stuck(schedule, period):
    talker = ToyTalker(FOREVER, code0=lambda i: i + 1 if i < 20 else 1500 + i % period)
    speech = read(talker, ToyDecoder(), schedule)
    assert speech.finish_reason == "stuck"
    assert len(speech.samples) == (20 + 50) * SPF  # 4 s of the pattern


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_room_tone_ends_the_segment_as_stuck_at_the_same_sample(schedule):
    talker = ToyTalker(FOREVER)
    speech = read(talker, ToyDecoder(silent_from=30), schedule, high_water_s=0.5)
    assert speech.finish_reason == "stuck"
    assert talker.steps < 30 + 75 + 2 * 25 + 20  # and does not go on to its limit in secret
    assert len(speech.samples) == (30 + 75) * SPF  # 6 s of silence


def test_after_a_stuck_segment_the_next_one_is_spoken():
    class Once(ToyTalker):
        def prefill(self, rows, sampling):
            state = super().prefill(rows, sampling)
            state.length = FOREVER if sampling.seed == 1 else 12
            return state

    speech = read(Once(), ToyDecoder(silent_from=12), "fixed:1/25", segments=[segment("stuck", seed=1), segment("fine", seed=2)])
    assert speech.finish_reason == "stuck"
    assert len(speech.samples) == (12 + 75 + 12) * SPF


def test_silence_found_after_the_talker_has_finished_still_counts():
    speech = read(ToyTalker(200), ToyDecoder(silent_from=10), "full")
    assert (speech.finish_reason, len(speech.samples)) == ("stuck", 85 * SPF)


def test_a_result_that_is_silent_from_end_to_end_is_an_error():
    with pytest.raises(SynthesisError, match="near-silent"):
        read(ToyTalker(20), ToyDecoder(silent=True), "fixed:1/25")
    with pytest.raises(SynthesisError, match="near-silent"):
        read(ToyTalker(FOREVER), ToyDecoder(silent=True), "fixed:1/25")


def test_a_short_silent_result_is_allowed():
    assert read(ToyTalker(5), ToyDecoder(silent=True), "fixed:1/25").finish_reason == "stop"


def test_the_detector_can_be_switched_off():
    off = StuckPolicy(enabled=False)
    loop = ToyTalker(300, code0=lambda i: 7)
    assert read(loop, ToyDecoder(silent_from=20), "fixed:1/25", policy=off).finish_reason == "stop"
    assert read(ToyTalker(30), ToyDecoder(silent=True), "fixed:1/25", policy=off).finish_reason == "stop"


def test_ordinary_speech_is_left_alone():
    talker = ToyTalker(400, code0=lambda i: 1 + (i * i) % 37 + (i // 40) * 3)
    assert read(talker, ToyDecoder(), "fixed:1/25").finish_reason == "stop"


def first_hit(codes, frames=50):
    detector = RepeatDetector(frames)
    return next((i for i, code in enumerate(codes) if detector.push(code)), None)


def test_repeat_detector_counts_the_frames_that_the_pattern_covers():
    assert first_hit([5] * 60) == 49
    assert first_hit([1, 2] * 30) == 49
    assert first_hit([1, 2, 3, 4, 5, 6, 7, 8] * 10) == 49
    assert first_hit([9, 9, *([5] * 60)]) == 51
    assert first_hit([1, 2, 3, 4, 5, 6, 7, 8, 9] * 20) is None
    assert first_hit(([5] * 40 + [6]) * 10) is None


def test_silence_detector_finds_the_frame_across_calls():
    detector = SilenceDetector(3, 4, 0.01)
    loud, quiet = np.full(4, 0.5, np.float32), np.zeros(4, np.float32)
    assert detector.push(np.concatenate([quiet, quiet, loud, quiet])) is None
    assert detector.push(quiet) is None
    assert detector.push(np.concatenate([quiet, quiet])) == 1
    assert detector.loudest == pytest.approx(0.5)


def test_policy_values_are_checked():
    with pytest.raises(ConfigError, match="positive"):
        StuckPolicy(silence_seconds=0)
    with pytest.raises(ConfigError, match="max_period"):
        StuckPolicy(max_period=0)
