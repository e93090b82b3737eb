"""What people type at the voice that comes with ouzel: heard in full, or named and left out, or refused."""

from __future__ import annotations

import logging

import pytest

from embedded_case import assert_spoken, plan, planned
from ouzel.errors import UsageError

LEFT_OUT = "left out what it cannot say"
HEARD = {
    # text: characters that the warning must name
    "Hi 你好.": ("你", "好"),
    "Yes, мир.": ("м", "и", "р"),
    "Go 🙂 now 👍🏽!": ("🙂", "👍"),
    "Wait ☃ ⌘ there.": ("☃", "⌘"),
    "pneumonoultramicroscopicsilicovolcanoconiosis": (),
    "x" * 24: (),
    "Zzyzx Qwrtpsdfg": (),
    "12345678901234567890": (),
    "0": (),
    "STOP RIGHT THERE": (),
    "a": (),
    "O'Brien's 3rd café": (),
}
NOTHING = ("…", "?!", "— – -", "你好", "Привет", "🙂👍", "   ", "", "\u200b", "。、！", "مرحبا")


@pytest.mark.parametrize("text", HEARD, ids=lambda text: text[:12])
def test_odd_text_is_heard_in_full(embedded, text, caplog):
    with caplog.at_level(logging.WARNING, "ouzel.api"):
        speech = embedded.say(text)
    assert_spoken(speech.samples, planned(plan(embedded, text)))
    assert speech.finish_reason in ("stop", "length")  # "stuck" and silence are failures
    said = " ".join(record.getMessage() for record in caplog.records)
    assert all(f"'{character}" in said for character in HEARD[text])
    assert bool(said) == bool(HEARD[text]), said


@pytest.mark.parametrize("text", NOTHING)
def test_nothing_to_say_is_refused_before_anything_is_made(embedded, text):
    with pytest.raises(UsageError):
        embedded.say(text)
    assert embedded.live().empty


@pytest.mark.parametrize("digits", [30, 400, 3000])
def test_figures_of_any_length_are_planned_in_pieces_that_end(embedded, digits):
    """Not spoken here: a digit takes a third of a second."""
    made = plan(embedded, "7" * digits)
    frames = planned(made)
    assert sum(frames) > 2 * digits
    assert max(frames) < 200
    assert all(segment.sampling.max_tokens > count for segment, count in zip(made.segments, frames, strict=True))
