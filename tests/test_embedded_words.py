"""A smoke test with a speech recogniser: the embedded voice says words, and those of its text."""

from __future__ import annotations

import numpy as np
import pytest
from training.voice.judge import Listener, wer

from embedded_case import FRAME, plan, planned, rms

WORST_WER = 0.4
"""Of the sentences below, for each speaker. docs/voice-report.md has what is measured on many sentences; this catches a voice
that babbles, not one that mumbles."""

SENTENCES = (
    "Good morning, how are you today?",
    "We will meet again at the station.",
    "Thank you for waiting.",
)


@pytest.fixture(scope="module")
def listener() -> Listener:
    return Listener()


@pytest.mark.parametrize("name", ["fern", "moss"])
def test_words_are_heard(embedded, listener, name):
    errors = words = 0
    heard = []
    for text in SENTENCES:
        speech = embedded.say(text, voice=name)
        # Silence is no success, wherever it lies: no second of a sentence is without sound.
        blocks = speech.samples[: sum(planned(plan(embedded, text, voice=name))) * FRAME]
        assert all(rms(blocks[i : i + 24000]) > rms(blocks) / 10 for i in range(0, len(blocks) - 12000, 12000))
        heard.append(listener.transcribe(speech.samples))
        score = wer(text, heard[-1])
        errors += min(score.errors, score.words)  # a recogniser that makes things up must not outweigh the others
        words += score.words
    assert errors / words <= WORST_WER, heard


def test_the_judge_hears_no_words_in_silence_and_noise(listener):
    """Else the test above could not fail."""
    noise = np.random.default_rng(0).normal(0, 0.05, 48000).astype(np.float32)
    for samples in (np.zeros(48000, np.float32), noise):
        score = wer(SENTENCES[0], listener.transcribe(samples))
        assert score.errors >= score.words - 1
