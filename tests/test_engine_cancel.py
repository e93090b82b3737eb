"""Cancelling: at any point, from anywhere, twice; nothing is left, nobody else notices, the next utterance is untouched."""

import gc
import random
import threading

import numpy as np
import pytest

from ouzel.engine import Engine, EngineOptions
from ouzel.errors import ClosedError
from ouzel.schedule import ScheduleSpec
from toys import Barrier, ToyDecoder, ToyTalker, reference_audio, segment

PLAIN = EngineOptions(fade_in_s=0.0)
SHORT = ScheduleSpec.parse("fixed:2/6")


def assert_clean(engine: Engine) -> None:
    assert engine.wait_idle(30)
    assert engine.live().empty
    gc.collect()
    assert not engine.talker.states
    assert not engine.decoder.states


def assert_next_is_fresh(engine: Engine) -> None:
    speech = engine.submit([segment("the next one", seed=3)]).read()
    np.testing.assert_array_equal(speech.samples, reference_audio("the next one", seed=3))


def run_to(phase: str):
    """An engine held at `phase`, its utterance and the barrier that holds it."""
    barrier = Barrier(at={"prefill": 0, "first step": 0, "step": 5, "decode": 1}[phase])
    on = {"prefill": "on_prefill", "first step": "on_step", "step": "on_step"}.get(phase)
    talker = ToyTalker(**({on: barrier} if on else {}))
    decoder = ToyDecoder(on_decode=barrier if phase == "decode" else None)
    engine = Engine(talker, decoder, options=PLAIN, schedule=SHORT)
    utterance = engine.submit([segment("a rather long sentence to stop in")])
    assert barrier.reached.wait(30)
    return engine, utterance, barrier


@pytest.mark.parametrize("phase", ["prefill", "first step", "step", "decode"])
@pytest.mark.parametrize("elsewhere", [False, True], ids=["same thread", "other thread"])
def test_cancel_in_every_phase(phase, elsewhere):
    engine, utterance, barrier = run_to(phase)
    with engine:
        if elsewhere:
            thread = threading.Thread(target=utterance.cancel)
            thread.start()
            thread.join()
        else:
            utterance.cancel()
        utterance.cancel()
        # silent at once, although the worker is still inside the call
        assert list(utterance) == []
        assert utterance.finish_reason == "cancelled"
        steps, calls = engine.talker.steps, engine.decoder.calls
        barrier.go.set()
        assert engine.wait_idle(30)
        assert engine.talker.steps <= steps + 1  # at most the call it was cancelled in
        assert engine.decoder.calls <= calls + 1
        assert list(utterance) == []
        assert_clean(engine)
        assert_next_is_fresh(engine)


def test_cancel_while_waiting_for_a_turn():
    barrier = Barrier()
    with Engine(ToyTalker(on_prefill=barrier), ToyDecoder(), options=EngineOptions(max_active=1)) as engine:
        first = engine.submit([segment("first")])
        assert barrier.reached.wait(30)
        second = engine.submit([segment("second")])
        second.cancel()
        assert engine.live().waiting == 0
        assert second.finish_reason == "cancelled"
        barrier.go.set()
        assert first.read().finish_reason == "stop"
        assert_clean(engine)


def test_cancel_while_paused_by_backpressure_frees_everything():
    options = EngineOptions(high_water_s=0.2)
    with Engine(ToyTalker(10_000), ToyDecoder(), options=options, schedule=SHORT) as engine:
        utterance = engine.submit([segment("never read to the end")])
        next(utterance)
        utterance.cancel()
        assert_clean(engine)


def test_cancel_drops_audio_that_is_ready_and_not_taken():
    barrier = Barrier(at=9)
    with Engine(ToyTalker(30, on_step=barrier), ToyDecoder(), options=PLAIN, schedule=SHORT) as engine:
        utterance = engine.submit([segment("ready and not taken")])
        with utterance._work.ready:
            assert utterance._work.ready.wait_for(lambda: len(utterance._work.ring) > 0, 30)
        utterance.cancel()
        assert list(utterance) == []
        barrier.go.set()
        assert_clean(engine)


def test_cancel_wakes_a_consumer_that_waits():
    engine, utterance, barrier = run_to("prefill")
    with engine:
        heard: list[object] = []
        consumer = threading.Thread(target=lambda: heard.extend(utterance))
        consumer.start()
        utterance.cancel()
        consumer.join(30)
        assert not consumer.is_alive()
        assert heard == []
        barrier.go.set()


def test_cancel_after_the_end_keeps_the_reason_but_drops_unheard_audio():
    with Engine(ToyTalker(9), ToyDecoder(), options=PLAIN, schedule=SHORT) as engine:
        heard = engine.submit([segment("heard")])
        assert heard.read().finish_reason == "stop"
        heard.cancel()
        assert heard.finish_reason == "stop"
        unheard = engine.submit([segment("unheard")])
        assert engine.wait_idle(30)
        assert unheard.finish_reason == "stop"
        unheard.cancel()
        assert list(unheard) == []
        assert unheard.finish_reason == "cancelled"
        assert_clean(engine)


def test_partial_audio_of_a_cancelled_utterance_is_flagged():
    barrier = Barrier(at=9)
    with Engine(ToyTalker(30, on_step=barrier), ToyDecoder(), options=PLAIN, schedule=SHORT) as engine:
        with engine.submit([segment("partial")]) as utterance:
            assert not next(utterance).is_last
        assert utterance.finish_reason == "cancelled"
        assert utterance.read().finish_reason == "cancelled"
        barrier.go.set()
        assert_clean(engine)


@pytest.mark.parametrize("started", [False, True])
def test_a_dropped_iterator_cancels(started):
    with Engine(ToyTalker(10_000), ToyDecoder(), options=PLAIN, schedule=SHORT) as engine:
        utterance = engine.submit([segment("dropped")])
        if started:
            next(utterance)
        del utterance
        assert_clean(engine)
        assert_next_is_fresh_with(engine, 10)


def assert_next_is_fresh_with(engine: Engine, frames: int) -> None:
    engine.talker.frames = frames
    speech = engine.submit([segment("after", seed=1)]).read()
    np.testing.assert_array_equal(speech.samples, reference_audio("after", seed=1, talker=ToyTalker(frames)))


def test_a_break_cancels():
    def listen(engine: Engine) -> None:
        for chunk in engine.submit([segment("break")]):
            if chunk.index == 1:
                break

    with Engine(ToyTalker(10_000), ToyDecoder(), options=PLAIN, schedule=SHORT) as engine:
        listen(engine)
        assert_clean(engine)


def test_closing_the_engine_ends_what_is_spoken_and_joins_its_threads():
    before = set(threading.enumerate())
    engine, utterance, barrier = run_to("step")
    failures: list[BaseException] = []

    def consume() -> None:
        try:
            list(utterance)
        except ClosedError as exc:
            failures.append(exc)

    consumer = threading.Thread(target=consume)
    consumer.start()
    closing = threading.Thread(target=engine.close)
    closing.start()
    consumer.join(30)
    assert len(failures) == 1
    barrier.go.set()
    closing.join(30)
    assert set(threading.enumerate()) <= before  # an earlier test's may have ended meanwhile
    assert engine.live().empty
    utterance.cancel()
    assert utterance.finish_reason == "cancelled"


def test_three_hundred_random_points():
    """Start, take a random number of chunks, cancel from a random side, sometimes with company; then all is as before."""
    rng = random.Random(1)
    before = set(threading.enumerate())
    with Engine(ToyTalker(), ToyDecoder(), options=EngineOptions(fade_in_s=0.0, high_water_s=0.5), schedule=SHORT) as engine:
        company = None
        for i in range(300):
            if i % 25 == 0:
                if company is not None:
                    text, utterance = company
                    np.testing.assert_array_equal(utterance.read().samples, reference_audio(text, seed=5))
                company = (f"company {i}", engine.submit([segment(f"company {i}", seed=5)]))
            utterance = engine.submit([segment(f"victim {i}", seed=i), segment("more", seed=i)])
            for _ in range(rng.randrange(6)):
                next(utterance, None)
            how = rng.randrange(4)
            if how == 0:
                utterance.cancel()
            elif how == 1:
                side = threading.Thread(target=utterance.close)
                side.start()
                next(utterance, None)
                side.join()
            elif how == 2:
                with utterance:
                    next(utterance, None)
            del utterance
            if i % 10 == 0:
                assert_next_is_fresh(engine)
        assert company is not None
        text, utterance = company
        np.testing.assert_array_equal(utterance.read().samples, reference_audio(text, seed=5))
        assert_clean(engine)
    assert set(threading.enumerate()) <= before
