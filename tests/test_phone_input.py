"""What people type at a voice that speaks English only: spoken, or named and left out, or refused; never silence as success."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli_run import error_of, made, ouzel
from ouzel.adapters import TalkerSampling
from ouzel.api.plan import TextOptions, make_plan
from ouzel.bundle import open_bundle
from ouzel.errors import UsageError
from ouzel.models.qwen3_tts import FAMILY
from ouzel.request import SpeechRequest
from phone_case import phone_bundle

SAMPLING = TalkerSampling()
LEFT_OUT = "This voice speaks English and left out what it cannot say: "
UNSPEAKABLE = ("…", "🙂", "你好", "   ", "?!", "\n\n", "- - -", "مرحبا 你好 🙂", "Привет, мир!", "«»", "。。。", "\u200b")


@pytest.fixture(scope="module")
def frontend():
    return FAMILY.frontend(open_bundle(phone_bundle()))


def plan(frontend, text, **options):
    return make_plan(SpeechRequest(text), frontend, SAMPLING, 0, TextOptions(**options))


@pytest.mark.parametrize("text", UNSPEAKABLE)
@pytest.mark.parametrize("strip", [True, False])
def test_nothing_to_say_is_an_error(frontend, text, strip):
    with pytest.raises(UsageError):
        plan(frontend, text, strip=strip)


def test_the_error_names_what_is_there(frontend):
    with pytest.raises(UsageError, match="This voice speaks English, and nothing in the text can be spoken: it has only '你'"):
        plan(frontend, "你好")


def test_characters_that_are_left_out_are_named_once(frontend):
    (warning,) = plan(frontend, "Hello 你好 there.").warnings
    assert warning.startswith(LEFT_OUT + "'你' (CJK UNIFIED IDEOGRAPH-4F60), '好'")
    (warning,) = plan(frontend, "Well done 👍 everyone.").warnings
    assert "'👍' (THUMBS UP SIGN)" in warning
    first, second = plan(frontend, "Well done 👍 мир.").warnings
    assert "👍" in first
    assert "👍" not in second
    assert "'м'" in second
    (warning,) = plan(frontend, "Well done 👍 everyone.", strip=False).warnings
    assert "👍" in warning
    assert plan(frontend, "Café, naïve: 25 °C, 3 € and “quotes” — done…").warnings == ()


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "I",
        "x" * 300,
        "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen",
        "pneumonoultramicroscopicsilicovolcanoconiosis",
        "7",
        "0" * 50,
        "3" * 1000,
        "1,234,567.89",
        "NASA WILL LAUNCH AT NOON TODAY",
        "OK",
        "e.g. Dr. Smith's",
        "Yes 🙂 no 🙃 maybe",
        "https://example.com/a?b=c",
        "'''",
        "don't",
        "a'b'c'd",
        "1" + "0" * 30,
    ],
)
def test_odd_texts_are_spoken(frontend, text):
    if not any(c.isalnum() for c in text):
        with pytest.raises(UsageError):
            plan(frontend, text)
        return
    made_plan = plan(frontend, text)
    assert made_plan.segments
    for segment in made_plan.segments:
        rows = segment.rows()
        assert 0 < rows.text_tokens < 250
        assert np.isfinite(rows.trailing).all()
        assert rows.frames == rows.text_tokens
        assert rows.frames + 11 <= segment.sampling.max_tokens


def test_a_long_word_is_longer_than_a_short_one(frontend):
    assert frontend.count_tokens("ba" * 50) > 10 * frontend.count_tokens("ba")
    assert frontend.count_tokens("4" * 40) > 20 * frontend.count_tokens("4") / 2


def test_what_is_left_out_makes_no_empty_piece(frontend):
    text = "Hello there, my friend. " + "你好世界。" * 200 + " Goodbye."
    assert all(segment.rows().text_tokens for segment in plan(frontend, text).segments)


@settings(max_examples=60)
@given(st.text(max_size=60))
def test_any_text_is_spoken_or_refused_with_a_sentence(frontend, text):
    try:
        segments = plan(frontend, text).segments
    except UsageError:
        return
    assert segments
    assert all(segment.rows().text_tokens > 0 for segment in segments)


def test_the_voice_warns_through_the_log(caplog):
    import ouzel as package

    with package.load(phone_bundle(), threads=1, stuck=False, warm_up=False) as voice, caplog.at_level(logging.WARNING):
        assert len(voice.say("Hi 你好.", seed=1).samples)
    assert [r.getMessage() for r in caplog.records if LEFT_OUT in r.getMessage()]


def test_the_command_line(tmp_path):
    model = ("-m", phone_bundle())
    done = ouzel("say", "Hi there 你好.", *model, "-o", "a.wav", "--no-stuck-detector", home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert LEFT_OUT + "'你'" in done.stderr.decode()
    quiet = ouzel("say", "Hi there 你好.", *model, "-o", "a.wav", "--no-stuck-detector", "-q", "--speed", "2", home=tmp_path)
    assert (quiet.returncode, quiet.stderr) == (0, b"")
    assert "nothing in the text can be spoken" in error_of(ouzel("say", "你好", *model, "-o", "b.wav", home=tmp_path))
    assert "speed must be a number from 0.25" in error_of(
        ouzel("say", "Hi.", "--speed", "9", *model, "-o", "b.wav", home=tmp_path)
    )
    assert made(tmp_path) == ["a.wav"]
