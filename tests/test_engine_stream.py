"""The engine streams exactly the decoder's samples, whatever the schedule, the listener's pace and the company."""

import threading

import numpy as np
import pytest

from ouzel.adapters import TalkerSampling
from ouzel.engine import Engine, EngineOptions, Segment, segment_seed
from ouzel.errors import ClosedError, ConfigError, UsageError
from ouzel.schedule import ScheduleSpec
from toys import SPF, Barrier, ToyDecoder, ToyTalker, reference_audio, rows_of, segment

PLAIN = EngineOptions(fade_in_s=0.0)


def make(talker=None, decoder=None, *, options=PLAIN, schedule="fixed:2/6"):
    return Engine(talker or ToyTalker(), decoder or ToyDecoder(), options=options, schedule=ScheduleSpec.parse(schedule))


@pytest.mark.parametrize("schedule", ["fixed:1/25", "fixed:2/6", "ramp:1,2,4,8", "adaptive", "auto", "full", "fixed:1/1"])
def test_any_schedule_gives_the_same_samples(schedule):
    with make(schedule=schedule) as engine:
        speech = engine.submit([segment("any schedule")]).read()
    np.testing.assert_array_equal(speech.samples, reference_audio("any schedule"))
    assert speech.finish_reason == "stop"


def test_chunks_are_numbered_sized_and_marked():
    with make(ToyTalker(14)) as engine:
        chunks = list(engine.submit([segment("numbered")]))
    assert [c.frames for c in chunks] == [2, 6, 6, 0]
    assert [c.index for c in chunks] == [0, 1, 2, 3]
    assert [c.is_last for c in chunks] == [False, False, False, True]
    assert [len(c.samples) for c in chunks] == [2 * SPF, 6 * SPF, 6 * SPF, 0]
    assert all(c.samples.dtype == np.float32 and c.sample_rate == 2400 for c in chunks)


def test_first_chunk_arrives_before_the_talker_is_done():
    barrier = Barrier(at=9)
    with make(ToyTalker(20, on_step=barrier)) as engine:
        utterance = engine.submit([segment("early")])
        assert barrier.reached.wait(30)
        assert next(utterance).frames == 2
        assert utterance.finish_reason is None
        barrier.go.set()
        assert sum(c.frames for c in utterance) == 18
        assert utterance.finish_reason == "stop"


def test_length_is_reported():
    with make(ToyTalker(50)) as engine:
        speech = engine.submit([segment("cut", max_tokens=11)]).read()
    assert (speech.finish_reason, len(speech.samples)) == ("length", 10 * SPF)


def test_segments_follow_each_other_with_fresh_states_and_keyed_seeds():
    texts = ["First sentence.", "Second one.", "Third."]
    with make() as engine:
        parts = [segment(text, seed=segment_seed(7, i)) for i, text in enumerate(texts)]
        chunks = list(engine.submit(parts))
    whole = np.concatenate([reference_audio(text, seed=segment_seed(7, i)) for i, text in enumerate(texts)])
    np.testing.assert_array_equal(np.concatenate([c.samples for c in chunks]), whole)
    assert [c.is_last for c in chunks].count(True) == 1
    assert chunks[-1].is_last
    assert [c.index for c in chunks] == list(range(len(chunks)))
    assert segment_seed(7, 0) == 7
    assert len({segment_seed(7, i) for i in range(1000)}) == 1000


def test_the_worst_end_of_the_segments_is_reported():
    with make(ToyTalker(9)) as engine:
        speech = engine.submit([segment("a", max_tokens=5), segment("b")]).read()
    assert speech.finish_reason == "length"


def test_reference_codes_prime_the_decoder_and_are_not_heard():
    ref = np.arange(20, dtype=np.int64).reshape(5, 4)
    with make(ToyTalker(6)) as engine:
        plain = engine.submit([segment("clone")]).read().samples
        primed = engine.submit([segment("clone", ref=ref)]).read().samples
    assert len(plain) == len(primed) == 6 * SPF
    assert not np.array_equal(plain, primed)


def test_fade_touches_only_the_first_5_ms_of_a_segment_however_it_is_cut():
    with make(options=EngineOptions(), schedule="fixed:1/1") as engine:
        fine = engine.submit([segment("fade")]).read().samples
    with make(options=EngineOptions(), schedule="full") as engine:
        whole = engine.submit([segment("fade")]).read().samples
    plain = reference_audio("fade")
    np.testing.assert_array_equal(fine, whole)
    np.testing.assert_array_equal(fine[12:], plain[12:])
    assert fine[0] == 0.0
    assert np.all(np.abs(fine[:12]) < np.abs(plain[:12]))


def test_every_segment_is_faded_in():
    with make(ToyTalker(5), options=EngineOptions()) as engine:
        samples = engine.submit([segment("one"), segment("two")]).read().samples
    assert samples[0] == samples[5 * SPF] == 0.0
    assert samples[5 * SPF - 1] != 0.0


def wait_until_paused(utterance) -> None:
    work = utterance._work
    with work.ready:
        while work.held_since is None:
            work.ready.wait(0.01)


def test_backpressure_pauses_the_talker_and_changes_no_sample():
    options = EngineOptions(fade_in_s=0.0, high_water_s=0.4)
    talker = ToyTalker(200)
    with make(talker, options=options, schedule="fixed:1/1") as engine:
        utterance = engine.submit([segment("slow listener")])
        first = next(utterance)
        wait_until_paused(utterance)
        # ring and backlog are each bounded by the mark and the lot that crossed it
        assert talker.steps <= 1 + 2 * (5 + 1) + 2
        rest = [chunk.samples for chunk in utterance]
        assert utterance.metrics.paused_s > 0
    np.testing.assert_array_equal(np.concatenate([first.samples, *rest]), reference_audio("slow listener", talker=ToyTalker(200)))


def test_a_schedule_hears_of_pauses():
    class Plain:
        """A schedule that ships every frame and notes the pauses."""

        kind, chunk_frames = "fixed", 1

        def __init__(self) -> None:
            self.pauses: list[float] = []
            self.shipped = 0

        def start(self, **_):
            return self

        def learn(self, speed) -> None:
            pass

        def paused(self, ms) -> None:
            self.pauses.append(ms)

        def offer(self, frames, now_ms, *, finished=False):
            new, self.shipped = frames - self.shipped, frames
            return new

    spec = Plain()
    options = EngineOptions(fade_in_s=0.0, high_water_s=0.1)
    with Engine(ToyTalker(12), ToyDecoder(), options=options, schedule=spec) as engine:
        utterance = engine.submit([segment("paused")])
        wait_until_paused(utterance)
        list(utterance)
        assert utterance.metrics.paused_s > 0
        assert sum(spec.pauses) == pytest.approx(utterance.metrics.paused_s * 1000)


def test_backpressure_of_one_listener_does_not_hold_up_another():
    options = EngineOptions(fade_in_s=0.0, high_water_s=0.2)
    with make(ToyTalker(100), options=options) as engine:
        idle = engine.submit([segment("nobody listens")])
        assert len(engine.submit([segment("someone does")]).read().samples) == 100 * SPF
        idle.cancel()


@pytest.mark.parametrize("batch", [1, 3])
def test_eight_together_sound_as_each_alone(batch):
    texts = [f"utterance number {i}" for i in range(8)]
    talker = ToyTalker()
    with make(talker, options=EngineOptions(fade_in_s=0.0, step_batch=batch)) as engine:
        gate = threading.Barrier(8)
        heard: dict[int, np.ndarray] = {}

        def speak(i: int) -> None:
            gate.wait()
            heard[i] = engine.submit([segment(texts[i], seed=i)]).read().samples

        threads = [threading.Thread(target=speak, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert engine.wait_idle(30)
    for i, text in enumerate(texts):
        np.testing.assert_array_equal(heard[i], reference_audio(text, seed=i))
    assert max(talker.batches) <= batch


def test_turns_are_shared_a_frame_each():
    order: list[int] = []

    class Watching(ToyTalker):
        def step(self, states):
            order.extend(state.key for state in states)
            return super().step(states)

    hold = Barrier()
    with make(Watching(30, on_prefill=hold), schedule="full") as engine:
        utterances = [engine.submit([segment(text)]) for text in ("one", "two", "three")]
        hold.go.set()
        for utterance in utterances:
            utterance.read()
    together = order[3:60]
    assert all(len(set(together[i : i + 3])) == 3 for i in range(0, 54, 3))


def test_more_than_max_active_wait_and_more_than_max_waiting_are_refused():
    hold = Barrier()
    options = EngineOptions(max_active=1, max_waiting=2)
    with make(ToyTalker(5, on_prefill=hold), options=options) as engine:
        running = engine.submit([segment("runs")])
        assert hold.reached.wait(30)
        waiting = [engine.submit([segment(f"waits {i}")]) for i in range(2)]
        with pytest.raises(UsageError, match="max_waiting"):
            engine.submit([segment("too many")])
        assert engine.live().waiting == 2
        hold.go.set()
        for utterance in (running, *waiting):
            assert len(utterance.read().samples) == 5 * SPF


def test_nothing_to_speak_and_closed_engine_are_errors():
    engine = make()
    with pytest.raises(UsageError, match="no segment"):
        engine.submit([])
    engine.close()
    engine.close()
    with pytest.raises(ClosedError):
        engine.submit([segment("too late")])


@pytest.mark.parametrize("bad", [{"high_water_s": 0}, {"fade_in_s": -1}, {"max_active": 0}, {"stall_timeout_s": float("nan")}])
def test_bad_options_are_named(bad):
    with pytest.raises(ConfigError, match=next(iter(bad))):
        EngineOptions(**bad)


def test_rows_are_made_only_when_their_turn_comes():
    made: list[str] = []

    def lazily(text: str) -> Segment:
        def rows():
            made.append(text)
            return rows_of(text)

        return Segment(rows, TalkerSampling())

    hold = Barrier(at=1)
    with make(ToyTalker(4, on_step=hold)) as engine:
        utterance = engine.submit([lazily("a"), lazily("b")])
        assert hold.reached.wait(30)
        assert made == ["a"]
        hold.go.set()
        utterance.read()
    assert made == ["a", "b"]
