"""What is counted: pauses, audio that was cut, frames against a limit, numbers of any kind."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from ouzel.api import TextOptions, Voice
from ouzel.engine import Engine, EngineOptions, StuckPolicy
from ouzel.errors import SynthesisError
from ouzel.schedule import ScheduleSpec
from toys import Barrier, ToyDecoder, ToyFrontend, ToyTalker, segment

SHORT = ScheduleSpec.parse("fixed:2/6")
QUIET = StuckPolicy(silence_seconds=0.8, silent_result_seconds=99)


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def until_held(utterance) -> None:
    work = utterance._work
    with work.ready:
        while work.held_since is None:
            work.ready.wait(0.01)


def test_a_slow_decoder_is_slowness_and_no_pause():
    clock = Clock()

    def work(frames: int) -> None:
        clock.now += 0.2 * frames  # slower than real time

    options = EngineOptions(fade_in_s=0.0, high_water_s=0.3)
    with Engine(ToyTalker(60), ToyDecoder(on_decode=work), options=options, schedule=SHORT, clock=clock) as engine:
        utterance = engine.submit([segment("slow decoder")])
        taken = threading.Thread(target=utterance.read)
        taken.start()
        taken.join(30)
        metrics = utterance.metrics
    assert metrics.paused_s == 0
    assert metrics.rtf > 2


def test_a_pause_ends_when_the_listener_makes_room_not_when_the_talker_comes_round():
    clock = Clock()
    hold = Barrier(at=1)
    options = EngineOptions(fade_in_s=0.0, high_water_s=0.5)
    with Engine(ToyTalker(40, on_prefill=hold), ToyDecoder(), options=options, schedule=SHORT, clock=clock) as engine:
        utterance = engine.submit([segment("starved by another's prompt")])
        until_held(utterance)
        other = engine.submit([segment("a long prompt")])
        assert hold.reached.wait(30)
        clock.now += 1.0  # nobody takes anything
        ring = utterance._work.ring
        while len(ring):
            next(utterance)
        clock.now += 5.0  # the listener has nothing, because the talker is elsewhere
        hold.go.set()
        utterance.read()
        metrics = utterance.metrics
        other.cancel()
    assert metrics.paused_s == pytest.approx(1.0)
    assert metrics.gap_max_s == pytest.approx(5.0)


def test_audio_that_was_decoded_and_withheld_is_counted():
    with Engine(ToyTalker(40), ToyDecoder(silent_from=5), schedule=ScheduleSpec.parse("full")) as engine:
        speech = engine.submit([segment("room tone at the end")], stuck=QUIET).read()
    assert speech.finish_reason == "stuck"
    assert (speech.metrics.frames, speech.metrics.cut_s) == (15, pytest.approx(25 * 0.08))


@pytest.mark.parametrize("ahead", [False, True], ids=["talker waits for the decoder", "talker runs ahead"])
def test_frames_that_were_cut_do_not_count_against_the_limit_however_far_the_talker_was(ahead):
    """Segments of 60 frames are cut after 15; a limit of 40 leaves 15 + 15 + 10."""
    talked = threading.Event()

    def on_step(frame: int) -> None:
        if frame >= 39:
            talked.set()

    def on_decode(frames: int) -> None:
        if ahead and frames == 2 and not talked.is_set():
            talked.wait(30)  # the first lot waits until the talker has used the limit up

    options = EngineOptions(fade_in_s=0.0, high_water_s=9.0 if ahead else 0.1, stuck=QUIET)
    talker, decoder = ToyTalker(60, on_step=on_step), ToyDecoder(silent_from=5, on_decode=on_decode)
    with Engine(talker, decoder, options=options, schedule=SHORT) as engine:
        chunks = list(engine.submit([segment(text) for text in ("a", "b", "c", "d")], max_frames=40))
    assert sum(chunk.frames for chunk in chunks) == 40
    assert [chunk.is_last for chunk in chunks].count(True) == 1


def test_numpys_numbers_are_numbers():
    def say(**options):
        with Voice(Engine(ToyTalker(), ToyDecoder()), ToyFrontend(), text=TextOptions(segment_tokens=4)) as voice:
            return voice.say("One two three. Four five six.", **options)

    plain = say(seed=7, max_new_tokens=31, temperature=0.5, top_k=9)
    other = say(seed=np.int64(7), max_new_tokens=np.int32(31), temperature=np.float32(0.5), top_k=np.uint8(9))
    np.testing.assert_array_equal(plain.samples, other.samples)
    assert type(other.seed) is int


def test_a_limit_that_leaves_no_frame_is_named():
    with Voice(Engine(ToyTalker(), ToyDecoder()), ToyFrontend()) as voice, pytest.raises(SynthesisError, match="max_new_tokens"):
        voice.say("Nothing fits.", max_new_tokens=1)


ENDS = {
    "the script ends": "next(utterance)",
    "a daemon thread listens": "import threading; threading.Thread(target=lambda: list(utterance), daemon=True).start()",
    "sys.exit in the loop": "for chunk in utterance: raise SystemExit(0)",
}


@pytest.mark.parametrize("how", ENDS)
def test_the_interpreter_may_end_while_something_is_spoken(how):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from toys import *\nfrom ouzel.engine import Engine\nfrom ouzel.schedule import ScheduleSpec\n"
        "engine = Engine(ToyTalker(10**6), ToyDecoder(), schedule=ScheduleSpec.parse('fixed:1/1'))\n"
        "utterance = engine.submit([segment('until the end', max_tokens=10**6)])\n" + ENDS[how]
    )
    here = __file__.rpartition("/")[0]
    done = subprocess.run([sys.executable, "-c", code, here], check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0
    assert "Fatal" not in done.stderr
