"""What breaks down reaches the one who asked for it, and nobody else."""

import gc
import threading

import numpy as np
import pytest

from ouzel.adapters import Frame
from ouzel.engine import Engine, EngineOptions, Segment
from ouzel.errors import OuzelError, SynthesisError, UsageError
from ouzel.schedule import ScheduleSpec
from toys import Failing, ToyDecoder, ToyTalker, reference_audio, segment

PLAIN = EngineOptions(fade_in_s=0.0)
SHORT = ScheduleSpec.parse("fixed:2/6")


def engine_of(talker=None, decoder=None, **options) -> Engine:
    return Engine(talker or ToyTalker(), decoder or ToyDecoder(), options=EngineOptions(fade_in_s=0.0, **options), schedule=SHORT)


def assert_recovers(engine: Engine, text: str = "afterwards") -> None:
    np.testing.assert_array_equal(engine.submit([segment(text)]).read().samples, reference_audio(text))
    assert engine.wait_idle(30)
    gc.collect()
    assert not engine.talker.states
    assert not engine.decoder.states


@pytest.mark.parametrize("where", ["prefill", "step", "decode"])
def test_a_failing_stage_raises_to_its_consumer_with_the_cause(where):
    failing = Failing(at=1 if where == "decode" else 0 if where == "prefill" else 4)
    talker = ToyTalker(on_prefill=failing if where == "prefill" else None, on_step=failing if where == "step" else None)
    with engine_of(talker, ToyDecoder(on_decode=failing if where == "decode" else None)) as engine:
        utterance = engine.submit([segment("fails at some point of its life")])
        with pytest.raises(SynthesisError, match="RuntimeError: the runtime broke down") as caught:
            list(utterance)
        assert caught.value.__cause__ is failing.error
        assert utterance.finish_reason == "error"
        with pytest.raises(SynthesisError):  # it stays an error, it does not become an ordinary end
            next(utterance)
        del utterance, caught
        failing.error.__traceback__ = None
        assert_recovers(engine)


def test_a_users_mistake_keeps_its_kind():
    def rows():
        raise UsageError("No such voice.")

    with engine_of() as engine:
        with pytest.raises(UsageError, match="No such voice"):
            engine.submit([Segment(rows, segment("x").sampling)]).read()
        assert_recovers(engine)


def test_audio_before_the_error_is_still_delivered():
    with engine_of(ToyTalker(40), ToyDecoder(poison_at=20)) as engine:
        utterance = engine.submit([segment("poison")])
        chunks = [next(utterance) for _ in range(4)]
        with pytest.raises(SynthesisError, match="non-finite"):
            next(utterance)
    assert [chunk.frames for chunk in chunks] == [2, 6, 6, 6]  # the poisoned one is not played in part
    assert all(np.isfinite(chunk.samples).all() for chunk in chunks)


def test_an_error_of_one_does_not_touch_another():
    class Picky(ToyTalker):
        def prefill(self, rows, sampling):
            if sampling.seed == 13:
                raise ValueError("unlucky")
            return super().prefill(rows, sampling)

    with engine_of(Picky()) as engine:
        good = [engine.submit([segment(f"good {i}", seed=i)]) for i in range(4)]
        bad = engine.submit([segment("bad", seed=13)])
        with pytest.raises(SynthesisError, match="unlucky"):
            bad.read()
        for i, utterance in enumerate(good):
            np.testing.assert_array_equal(utterance.read().samples, reference_audio(f"good {i}", seed=i))


def test_zero_frames_are_an_error_not_an_empty_success():
    with engine_of(ToyTalker(0)) as engine, pytest.raises(SynthesisError, match="before its first frame"):
        engine.submit([segment("Good morning, and welcome to the daily briefing.")]).read()


def test_zero_frames_in_a_later_segment_are_an_error_too():
    class Lazy(ToyTalker):
        def prefill(self, rows, sampling):
            state = super().prefill(rows, sampling)
            state.length = 0 if sampling.seed == 1 else 8
            return state

    with engine_of(Lazy()) as engine, pytest.raises(SynthesisError, match="segment 2 of 2"):
        engine.submit([segment("spoken", seed=0), segment("swallowed", seed=1)]).read()


class Liar(ToyTalker):
    """A talker whose answers are not what the protocol asks for."""

    def __init__(self, lie) -> None:
        super().__init__(10)
        self.lie = lie

    def step(self, states):
        return self.lie(super().step(states))


@pytest.mark.parametrize(
    ("lie", "complaint"),
    [
        (lambda frames: [], "0 frames for 1"),
        (lambda frames: [Frame(None)], "neither a frame nor a reason"),
        (lambda frames: [Frame(np.zeros(3, np.int64))], r"shape \(3,\)"),
    ],
)
def test_a_talker_that_breaks_the_protocol_is_found_out(lie, complaint):
    with engine_of(Liar(lie)) as engine, pytest.raises(SynthesisError, match=complaint):
        engine.submit([segment("lies")]).read()


def test_a_decoder_that_loses_samples_is_found_out():
    class Short(ToyDecoder):
        def decode(self, state, codes, *, last=False):
            return super().decode(state, codes, last=last)[:-1]

    with engine_of(ToyTalker(), Short()) as engine, pytest.raises(SynthesisError, match="was due"):
        engine.submit([segment("lossy")]).read()


def test_a_stall_ends_with_an_error():
    release = threading.Event()
    with engine_of(ToyTalker(on_step=lambda frame: release.wait(30)), stall_timeout_s=0.05) as engine:
        utterance = engine.submit([segment("hangs")])
        with pytest.raises(SynthesisError, match=r"No audio came for 0.05 s"):
            next(utterance)
        release.set()
        assert engine.wait_idle(30)


def test_a_broken_worker_fails_everybody_instead_of_hanging_them(monkeypatch):
    thrown = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda args: thrown.set())
    engine = engine_of()
    monkeypatch.setattr(engine._registry, "talker_turn", lambda: 1 / 0)
    utterance = engine.submit([segment("nobody speaks")])
    with pytest.raises((ZeroDivisionError, OuzelError)):
        list(utterance)
    engine.close()
    assert thrown.is_set()
