"""Stages moved between utterances: what has begun ends where it began, what begins next begins elsewhere, nothing is left."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import ouzel
import second_runtime
from bundles import converted
from ouzel.engine import Engine, EngineOptions, Stages
from ouzel.errors import BundleError, ClosedError, SynthesisError, UsageError
from ouzel.schedule import ScheduleSpec
from toys import Barrier, ToyDecoder, ToyFrontend, ToyTalker, reference_audio, segment

SHORT = ScheduleSpec.parse("fixed:2/6")


class OtherTalker(ToyTalker):
    """Says something else."""

    def prefill(self, rows, sampling):
        state = super().prefill(rows, sampling)
        state.key += 1
        return state


def test_what_has_begun_ends_where_it_began():
    hold = Barrier(at=5)
    old, new = Stages(ToyTalker(on_step=hold), ToyDecoder()), Stages(OtherTalker(), ToyDecoder())
    texts = ("the first of them", "and its second piece")
    with Engine(old.talker, old.decoder, schedule=SHORT, options=EngineOptions(fade_in_s=0)) as engine:
        first = engine.submit([segment(text) for text in texts])
        assert hold.reached.wait(30)
        engine.replace(new)
        second = engine.submit([segment(text) for text in texts])
        hold.go.set()
        for utterance, talker in ((first, ToyTalker), (second, OtherTalker)):
            wanted = np.concatenate([reference_audio(text, talker=talker()) for text in texts])
            np.testing.assert_array_equal(utterance.read().samples, wanted)
        assert engine.talker is new.talker
        assert engine.wait_idle(30)
    assert min(old.talker.steps, old.decoder.calls, new.talker.steps, new.decoder.calls) > 0
    assert new.speed.model() is not None
    assert not any((old.talker.states, old.decoder.states, new.talker.states, new.decoder.states))


def test_a_batch_of_steps_is_of_one_talker():
    hold = Barrier(at=3)
    old, new = ToyTalker(on_step=hold), OtherTalker()
    with Engine(old, ToyDecoder(), schedule=SHORT, options=EngineOptions(step_batch=8, fade_in_s=0)) as engine:
        first = [engine.submit([segment(f"number {i}")]) for i in range(2)]
        assert hold.reached.wait(30)
        engine.replace(Stages(new, ToyDecoder()))
        second = [engine.submit([segment(f"number {i}")]) for i in range(2)]
        hold.go.set()
        for talker, utterances in ((ToyTalker, first), (OtherTalker, second)):
            for i, utterance in enumerate(utterances):
                np.testing.assert_array_equal(utterance.read().samples, reference_audio(f"number {i}", talker=talker()))


def test_the_old_stages_go_with_their_last_utterance():
    hold = Barrier(at=3)
    talker, decoder = ToyTalker(on_step=hold), ToyDecoder()
    gone = weakref.ref(talker), weakref.ref(decoder)
    with Engine(talker, decoder, schedule=SHORT) as engine:
        del talker, decoder
        utterance = engine.submit([segment("kept in the hand")])
        assert hold.reached.wait(30)
        engine.replace(Stages(ToyTalker(), ToyDecoder()))
        assert None not in [ref() for ref in gone]
        hold.go.set()
        utterance.read()
        assert engine.wait_idle(30)
        gc.collect()
        assert [ref() for ref in gone] == [None, None]
        assert utterance.metrics.frames > 0  # the utterance itself is still there


def test_a_cancelled_utterance_lets_go_too():
    hold = Barrier(at=2)
    talker = ToyTalker(on_step=hold)
    gone = weakref.ref(talker)
    with Engine(talker, ToyDecoder(), schedule=SHORT) as engine:
        del talker
        utterance = engine.submit([segment("to be stopped")])
        assert hold.reached.wait(30)
        engine.replace(Stages(ToyTalker(), ToyDecoder()))
        utterance.cancel()
        hold.go.set()
        assert engine.wait_idle(30)
        gc.collect()
        assert gone() is None
        np.testing.assert_array_equal(engine.submit([segment("next")]).read().samples[200:], reference_audio("next")[200:])


def test_a_decoder_of_another_kind_and_a_closed_engine_are_refused():
    other = ToyDecoder()
    other.sample_rate = 16000
    with Engine(ToyTalker(), ToyDecoder()) as engine:
        with pytest.raises(UsageError, match="of different models"):
            engine.replace(Stages(ToyTalker(), other))
        with pytest.raises(UsageError, match="of different models"):
            engine.submit([segment("x")], stages=Stages(ToyTalker(), other))
    with pytest.raises(ClosedError):
        engine.replace(Stages(ToyTalker(), ToyDecoder()))


def test_a_voice_made_by_hand_has_nothing_to_move_to():
    with ouzel.Voice(Engine(ToyTalker(), ToyDecoder()), ToyFrontend()) as voice:
        assert voice.placement == {}
        with pytest.raises(UsageError, match=r"not made by ouzel\.load"):
            voice.place(talker="onnxruntime")


# ---- with real stages


@pytest.fixture(scope="module")
def second():
    with second_runtime.registered() as runtime:
        yield runtime


@pytest.fixture(scope="module")
def two(second, nano_checkpoint) -> Path:
    return converted(nano_checkpoint("custom_voice"), runtimes=("onnxruntime", second.name))


@pytest.fixture
def voice(two):
    with ouzel.load(two, stuck=False, schedule="fixed:1/4", threads=1, warm_up=False) as voice:
        yield voice


REQUEST = {"greedy": True, "max_new_tokens": 24}


@pytest.mark.parametrize(
    "places", [{"talker": "second", "predictor": "onnxruntime"}, {"predictor": "second"}, {"decoder": "second"}]
)
def test_mixed_placements_say_the_same(voice, places):
    expected = voice.say("Hello there.", **REQUEST).samples
    found = voice.place(**places)
    assert {stage: at.runtime for stage, at in found.items()} == {
        stage: places.get(stage, "onnxruntime") for stage in ("talker", "predictor", "decoder")
    }
    assert voice.placement == found
    np.testing.assert_array_equal(voice.say("Hello there.", **REQUEST).samples, expected)


def test_what_stays_is_not_loaded_again(voice):
    talker, decoder = voice.engine.talker, voice.engine.decoder
    voice.place(decoder="second")
    assert voice.engine.talker is talker
    assert voice.engine.decoder is not decoder
    decoder, speed = voice.engine.decoder, voice.engine.speed
    voice.place(decoder="second")
    assert voice.engine.decoder is decoder
    assert voice.engine.speed is speed
    voice.place(threads=2)
    assert voice.engine.decoder is not decoder
    assert {at.threads for at in voice.placement.values()} == {2}


def test_an_utterance_goes_on_while_its_voice_moves(voice):
    expected = voice.say("Hello there.", **REQUEST).samples
    utterance = voice.start("Hello there.", **REQUEST)
    begun = next(utterance).samples
    voice.place(talker="second", decoder="second")
    rest = utterance.read()
    np.testing.assert_array_equal(np.concatenate([begun, rest.samples]), expected)
    np.testing.assert_array_equal(voice.say("Hello there.", **REQUEST).samples, expected)
    assert voice.live().empty


@pytest.mark.parametrize("problem", ["missing", "breaks", "nowhere"])
def test_a_move_that_fails_moves_nothing(voice, second, monkeypatch, problem):
    before, stages = voice.placement, (voice.engine.talker, voice.engine.decoder)
    name, error = "second", UsageError
    if problem == "missing":
        monkeypatch.setattr(second, "available", False)
    elif problem == "breaks":
        monkeypatch.setattr(second, "breaks", "decoder")
        error = SynthesisError
    else:
        name, error = "tflite", BundleError
    with pytest.raises(error):
        voice.place(talker=name, decoder=name)
    assert voice.placement == before
    assert (voice.engine.talker, voice.engine.decoder) == stages
    assert voice.say("Hello.", **REQUEST).metrics.frames > 0
    found = voice.place(decoder=name, fallback=True)
    assert found["decoder"].runtime == "onnxruntime"
    assert found["decoder"].instead_of


def native_threads() -> int:
    return len(os.listdir("/proc/self/task"))


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_threads_and_memory_of_the_old_place_are_gone(two):
    gc.collect()
    others = threading.enumerate()  # of voices that other tests keep
    with ouzel.load(two, stuck=False, schedule="fixed:1/4", threads=2) as voice:
        gone = weakref.ref(voice.engine.talker), weakref.ref(voice.engine.decoder)
        before = native_threads()
        utterance = voice.start("Hello there.", **REQUEST)
        next(utterance)
        voice.place(talker="second", decoder="second")
        assert native_threads() > before
        voice.place(talker="onnxruntime", decoder="onnxruntime", threads=1)
        utterance.read()
        assert voice.engine.wait_idle(30)
        gc.collect()
        assert [ref() for ref in gone] == [None, None]
        assert native_threads() < before - 2  # each of the three sessions had one thread more
        own = [t.name for t in threading.enumerate() if t.name.startswith("ouzel") and t not in others]
        assert sorted(own) == ["ouzel-decoder", "ouzel-talker"]


def test_a_closed_voice_cannot_be_moved(two):
    voice = ouzel.load(two, stuck=False, warm_up=False, threads=1)
    voice.close()
    for warm_up in (True, False):
        with pytest.raises(ClosedError):
            voice.place(decoder="second", warm_up=warm_up)
