"""The Python interface on toys: names, options, one path for all ways to speak, seeds, long text, ends."""

import asyncio
import gc
import subprocess
import sys
import threading
import wave
import weakref

import numpy as np
import pytest

import ouzel
from ouzel.adapters import TalkerSampling
from ouzel.api import TextOptions, Voice
from ouzel.engine import Engine, EngineOptions, segment_seed
from ouzel.errors import ClosedError, SynthesisError, UsageError
from ouzel.request import SpeechRequest
from toys import RATE, Barrier, ToyDecoder, ToyFrontend, ToyTalker, reference_audio

NAMES = [
    *("AudioChunk", "ClosedError", "EngineOptions", "OuzelError", "Player", "ScheduleSpec", "Speech", "SpeechRequest"),
    *("StuckPolicy", "SynthesisError", "TextOptions", "UsageError", "Utterance", "Voice", "VoiceInfo", "load"),
]


@pytest.fixture
def frontend():
    return ToyFrontend()


@pytest.fixture
def voice(frontend):
    engine = Engine(ToyTalker(), ToyDecoder(), options=EngineOptions(fade_in_s=0.0))
    with Voice(engine, frontend, name="toy", text=TextOptions(segment_tokens=8)) as voice:
        yield voice


def test_public_names_are_exactly_these():
    assert ouzel.__all__ == NAMES
    assert all(getattr(ouzel, name) is not None for name in NAMES)
    assert set(NAMES) <= set(dir(ouzel))
    with pytest.raises(AttributeError, match="it offers"):
        ouzel.lode  # noqa: B018  the look-up is what raises


def test_importing_loads_no_runtime_and_no_numpy():
    code = "import sys, ouzel; print([m for m in ('numpy', 'onnxruntime', 'torch', 'yaml') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_every_way_to_speak_gives_the_same_samples(voice):
    expected = reference_audio("Hello there.", seed=7)
    chunks = list(voice.stream("Hello there.", seed=7))
    np.testing.assert_array_equal(np.concatenate([c.samples for c in chunks]), expected)
    assert chunks[-1].is_last

    speech = voice.say("Hello there.", seed=7)
    np.testing.assert_array_equal(speech.samples, expected)
    assert (speech.sample_rate, speech.finish_reason, speech.seed) == (RATE, "stop", 7)
    assert speech.metrics.finish_reason == "stop"
    assert speech.metrics.samples == len(expected)
    assert speech.duration == pytest.approx(len(expected) / RATE)

    np.testing.assert_array_equal(voice.start("Hello there.", seed=7).read().samples, expected)

    async def listen():
        streamed = [c.samples async for c in voice.astream("Hello there.", seed=7)]
        return np.concatenate(streamed), (await voice.asay("Hello there.", seed=7)).samples

    for samples in asyncio.run(listen()):
        np.testing.assert_array_equal(samples, expected)


def test_saved_speech_is_a_wav(voice, tmp_path):
    speech = voice.say("Save me.", seed=1)
    path = speech.save(tmp_path / "speech.wav")
    with wave.open(str(path)) as found:
        assert found.getframerate() == RATE
        assert found.readframes(found.getnframes()) == speech.pcm16()


def test_without_a_seed_a_new_one_is_drawn_and_told(voice):
    first, second = voice.say("Again."), voice.say("Again.")
    assert first.seed != second.seed
    np.testing.assert_array_equal(voice.say("Again.", seed=first.seed).samples, first.samples)


def test_the_deploy_files_seed_is_used_unless_the_request_has_one(frontend):
    with Voice(Engine(ToyTalker(), ToyDecoder()), frontend, seed=5) as voice:
        assert voice.say("A seed.").seed == 5
        assert voice.say("A seed.", seed=0).seed == 0


def test_unknown_and_bad_options_are_named(voice):
    with pytest.raises(UsageError, match=r"Unknown option 'voise'. Did you mean 'voice'\?.*temperature"):
        voice.say("x", voise="toy")
    with pytest.raises(UsageError, match="Unknown voice 'Bob'"):
        voice.stream("x", voice="Bob")
    with pytest.raises(UsageError, match="must be a str, not bytes"):
        voice.say(b"x")
    with pytest.raises(UsageError, match="empty"):
        voice.say("  ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("temperature", -1), ("temperature", "hot"), ("temperature", float("nan")), ("temperature", True)),
        *(("top_p", 0), ("top_p", 1.5), ("top_k", -1), ("top_k", 2.5), ("seed", "7"), ("seed", True)),
        *(("max_new_tokens", 0), ("max_new_tokens", 5000), ("initial_codec_chunk_frames", -1)),
        *(("voice", 3), ("greedy", 1), ("non_streaming_mode", "yes")),
    ],
)
def test_options_out_of_range_are_refused_by_name(voice, name, value):
    with pytest.raises(UsageError, match=name):
        voice.say("x", **{name: value})


def test_options_reach_the_sampling_and_the_front_end():
    taken: list[TalkerSampling] = []

    class Watching(ToyTalker):
        def prefill(self, rows, sampling):
            taken.append(sampling)
            return super().prefill(rows, sampling)

    defaults = TalkerSampling(temperature=0.7, top_k=20, repetition_penalty=1.2)
    frontend = ToyFrontend()
    with Voice(Engine(Watching(), ToyDecoder()), frontend, sampling=defaults) as voice:
        voice.say("plain", seed=1)
        voice.say("hot", temperature=1.5, top_p=0.5, language="auto", max_new_tokens=9, seed=1)
        voice.say("greedy", greedy=True, seed=1)
    plain, hot, greedy = taken
    assert (plain.temperature, plain.top_k, plain.repetition_penalty, plain.seed) == (0.7, 20, 1.2, 1)
    assert plain.max_tokens == 40
    assert plain.stop_token_ids == (2150,)
    assert (hot.temperature, hot.top_p, hot.top_k, hot.max_tokens) == (1.5, 0.5, 20, 9)
    assert (greedy.temperature, greedy.subtalker.do_sample) == (0.0, False)
    assert frontend.requests[1].language == "auto"


def test_a_request_value_can_be_given_and_changed(voice):
    request = SpeechRequest("From a value.", seed=3)
    np.testing.assert_array_equal(voice.say(request).samples, reference_audio("From a value.", seed=3))
    assert voice.say(request, seed=4).seed == 4


LONG = "One two three four. Five six seven eight. Nine ten eleven twelve. The end."


def test_long_text_is_cut_and_every_piece_has_its_own_seed(voice):
    speech = voice.say(LONG, seed=11)
    pieces = ["One two three four. Five six seven eight.", "Nine ten eleven twelve. The end."]
    expected = [reference_audio(piece, seed=segment_seed(11, i)) for i, piece in enumerate(pieces)]
    np.testing.assert_array_equal(speech.samples, np.concatenate(expected))


def test_a_limit_of_frames_is_honoured_over_all_pieces(frontend):
    engine = Engine(ToyTalker(20), ToyDecoder(), options=EngineOptions(fade_in_s=0.0))
    with Voice(engine, frontend, text=TextOptions(segment_tokens=8)) as voice:
        speech = voice.say(LONG, max_new_tokens=31, seed=1)
        assert (speech.metrics.frames, speech.finish_reason) == (30, "length")
        speech = voice.say("Short.", max_new_tokens=11, seed=1)
        assert (speech.metrics.frames, speech.finish_reason) == (10, "length")
        chunks = list(voice.stream(LONG, max_new_tokens=31, seed=1))
        assert [c.is_last for c in chunks].count(True) == 1


def test_cancel_and_close():
    barrier = Barrier(at=2)
    engine = Engine(ToyTalker(1000, on_step=barrier), ToyDecoder())
    voice = Voice(engine, ToyFrontend())
    utterance = voice.start("Stop me.")
    assert barrier.reached.wait(30)
    utterance.cancel()
    assert utterance.finish_reason == "cancelled"
    running = voice.start("Cut by closing.")
    closing = threading.Thread(target=voice.close)
    closing.start()
    with pytest.raises(ClosedError):
        list(running)
    barrier.go.set()
    closing.join(30)
    with pytest.raises(ClosedError, match="closed"):
        voice.say("Too late.")
    assert voice.live().empty


def test_a_voice_that_nobody_holds_ends_its_threads_but_not_under_a_running_utterance():
    before = set(threading.enumerate())

    def only_the_utterance():
        return Voice(Engine(ToyTalker(12), ToyDecoder()), ToyFrontend()).stream("Still speaking.", seed=1)

    utterance = only_the_utterance()
    gc.collect()
    threads = [t for t in threading.enumerate() if t.name.startswith("ouzel-")]
    engine = weakref.ref(utterance.owner.engine)
    assert len(list(utterance)) > 1
    del utterance
    gc.collect()
    for thread in threads:
        thread.join(30)
    assert set(threading.enumerate()) <= before
    gc.collect()
    assert engine() is None


def test_warm_up_changes_no_later_sample_and_primes_the_speed(voice):
    assert voice.outlook() is None
    voice.warm_up()
    assert voice.outlook() is not None
    np.testing.assert_array_equal(voice.say("After it.", seed=2).samples, reference_audio("After it.", seed=2))
    assert voice.live().empty


def test_a_bundle_that_needs_a_reference_is_left_cold(frontend):
    class Picky(ToyFrontend):
        def resolve(self, request):
            raise UsageError("needs a reference")

    with Voice(Engine(ToyTalker(), ToyDecoder()), Picky()) as voice:
        voice.warm_up()
        assert voice.outlook() is None


def test_markup_is_stripped_unless_told_otherwise(frontend):
    with Voice(Engine(ToyTalker(), ToyDecoder()), frontend) as voice:
        voice.say("**Bold** words", seed=1)
        assert frontend.requests[-1].text == "Bold words"
    with Voice(Engine(ToyTalker(), ToyDecoder()), frontend, text=TextOptions(strip=False, normalise=False)) as voice:
        voice.say("**Bold** words", seed=1)
        assert frontend.requests[-1].text == "**Bold** words"


def test_errors_at_work_reach_the_caller(frontend):
    with Voice(Engine(ToyTalker(30), ToyDecoder(poison_at=3)), frontend) as voice:
        with pytest.raises(SynthesisError, match="non-finite"):
            voice.say("poison")

        async def say():
            await voice.asay("poison")

        with pytest.raises(SynthesisError, match="non-finite"):
            asyncio.run(say())
