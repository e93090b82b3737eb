"""The whole way from text to samples on the voice that comes with ouzel."""

from __future__ import annotations

import asyncio
import json
import wave
from itertools import pairwise

import numpy as np
import pytest

import ouzel as package
from cli_run import made, ouzel
from embedded_case import FRAME, OVERRUN, SCHEDULE, assert_spoken, plan, planned, rms, usual_pitch
from ouzel.bench.soak import fingerprint, soak
from ouzel.engine import EngineOptions
from ouzel.schedule import ScheduleSpec

HELLO = "Hello from the edge."
SENTENCE = "The bird sings beside the running stream."
LONG = (
    "The kettle is on, so tea will be ready in a moment. I forgot my umbrella and now it is raining. "
    "Your package has been delivered to the front door. Remember to water the plants before you leave. "
    "There is fresh bread on the table."
)
SCHEDULES = ("auto", "fixed:1/25", "fixed:3/4", "ramp:1,2,4/8", "adaptive", "full")


def test_say_writes_the_frames_that_were_planned(embedded, tmp_path):
    done = ouzel("say", HELLO, "-o", "hello.wav", "--threads", "1", "--stats", "json", home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert made(tmp_path) == ["hello.wav"]
    with wave.open(str(tmp_path / "hello.wav")) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24000, 1, 2)
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768.0
    assert_spoken(samples, planned(plan(embedded, HELLO)))
    figures = json.loads(done.stderr)
    assert (figures["model"], figures["frames"]) == ("embedded", len(samples) // FRAME)


def test_load_takes_it_where_nothing_else_is_stored(embedded, tmp_path, monkeypatch):
    monkeypatch.setenv("OUZEL_HOME", str(tmp_path))
    monkeypatch.delenv("OUZEL_MODEL", raising=False)
    with package.load(threads=1, schedule=SCHEDULE) as loaded:
        assert loaded.path == embedded.path
        assert [(v.name, v.language) for v in loaded.voices] == [("fern", "english"), ("moss", "english")]
        assert all(v.description and v.licence and v.origin for v in loaded.voices)
        warm = loaded.say(HELLO)
    assert np.array_equal(warm.samples, embedded.say(HELLO).samples)  # the first is the default, and warming up changes nothing
    assert np.array_equal(warm.samples, embedded.say(HELLO, voice="fern").samples)


# ---- streaming


def test_the_first_chunk_comes_long_before_the_end(embedded):
    frames = planned(plan(embedded, LONG))
    utterance = embedded.stream(LONG)
    first = next(utterance)
    assert len(first.samples) == FRAME
    assert not utterance.done  # whatever the machine: the talker waits while 2 s are decoded and 2 s are on their way
    assert sum(frames) > 2 * 75
    chunks = [first, *utterance]
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert [chunk.is_last for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    # A long text is spoken in pieces, and every piece is heard.
    samples = np.concatenate([chunk.samples for chunk in chunks])
    assert len(frames) > 1
    assert_spoken(samples, frames)
    edges = np.cumsum([0, *frames]) * FRAME
    assert all(rms(samples[a:b]) > rms(samples) / 3 for a, b in pairwise(edges))


def test_every_schedule_gives_the_same_samples(embedded):
    def spoken(schedule: str) -> np.ndarray:
        return embedded.engine.submit(plan(embedded, SENTENCE).segments, schedule=ScheduleSpec.parse(schedule)).read().samples

    whole = spoken("full")
    assert_spoken(whole, planned(plan(embedded, SENTENCE)))
    for schedule in SCHEDULES:
        np.testing.assert_allclose(spoken(schedule), whole, rtol=0, atol=1e-4, err_msg=schedule)


# ---- repeating


def test_seeded_and_greedy_runs_are_reproducible(embedded):
    warm = {"temperature": 0.9, "top_k": 50}
    drawn = [embedded.say(HELLO, seed=seed, **warm).samples for seed in (1, 1, 2)]
    assert np.array_equal(drawn[0], drawn[1])
    assert drawn[0].shape != drawn[2].shape or not np.array_equal(drawn[0], drawn[2])
    greedy = [embedded.say(HELLO, seed=seed, greedy=True).samples for seed in (1, 2)]
    assert np.array_equal(*greedy)
    assert_spoken(greedy[0], planned(plan(embedded, HELLO)))


# ---- abort


def test_abort_ends_within_a_frame_and_leaves_nothing(embedded, monkeypatch):
    talker, steps = embedded.engine.talker, 0
    step = talker.step

    def counted(states):
        nonlocal steps
        steps += len(states)
        return step(states)

    before = embedded.say(HELLO)
    monkeypatch.setattr(talker, "step", counted)
    utterance = embedded.start(LONG)
    next(utterance)
    utterance.cancel()
    at_cancel = steps
    assert list(utterance) == []
    assert utterance.finish_reason == "cancelled"
    assert embedded.engine.wait_idle(300)
    assert embedded.live().empty
    assert steps - at_cancel <= 1  # the step that was under way; one that began just before may be counted after
    monkeypatch.undo()
    assert np.array_equal(embedded.say(HELLO).samples, before.samples)


def test_a_short_soak(embedded):
    report = soak(embedded, fingerprint(embedded), points=6, probe_every=3)
    assert [problem for problem in report.problems if not problem.startswith("memory")] == []
    assert (report.points, report.probes) == (6, 2)


# ---- several at once


def test_eight_at_once_are_equal_to_each_alone(embedded):
    texts = ("One.", "Two birds.", "Three.", "Stop me.", "Good morning.", "Six.", "Seven seas.", "Come in.")
    asked = [(text, {"voice": ("fern", "moss")[i % 2], "seed": i}) for i, text in enumerate(texts)]
    alone = [embedded.say(text, **options).samples for text, options in asked]

    async def together(speaker):
        return await asyncio.gather(*(speaker.asay(text, **options) for text, options in asked))

    for one, crowd in zip(alone, asyncio.run(together(embedded)), strict=True):
        assert np.array_equal(one, crowd.samples)
    # A batch of states in one step call of the talker.
    with package.load("embedded", schedule=SCHEDULE, threads=1, warm_up=False, options=EngineOptions(step_batch=8)) as batched:
        for one, crowd in zip(alone, asyncio.run(together(batched)), strict=True):
            assert np.array_equal(one, crowd.samples)


# ---- pace and speakers


@pytest.mark.parametrize("name", ["fern", "moss"])
def test_speed_changes_the_length(embedded, name):
    lengths = []
    for speed in (0.7, 1.0, 1.5):
        speech = embedded.say(HELLO, voice=name, speed=speed)
        frames = planned(plan(embedded, HELLO, voice=name, speed=speed))
        assert_spoken(speech.samples, frames)
        lengths.append(sum(frames))
    slow, usual, fast = lengths
    assert slow > 1.2 * usual
    assert fast < 0.8 * usual


def test_the_speakers_are_a_woman_and_a_man(embedded):
    fern, moss = (embedded.say(SENTENCE, voice=name).samples for name in ("fern", "moss"))
    pitches, strengths = zip(usual_pitch(fern), usual_pitch(moss), strict=True)
    assert pitches[0] > 150
    assert pitches[1] < 140
    assert min(strengths) > 0.1
    assert abs(len(fern) - len(moss)) < 2 * OVERRUN * FRAME


def test_the_pitch_is_not_read_into_noise_and_is_that_of_a_tone():
    noise = np.random.default_rng(0).normal(0, 0.1, 48000)
    assert usual_pitch(noise)[1] < 0.1
    buzz = sum(np.sin(2 * np.pi * 97 * k * np.arange(48000) / 24000) / k for k in range(1, 9))
    assert usual_pitch(buzz)[0] == pytest.approx(97, rel=0.01)
