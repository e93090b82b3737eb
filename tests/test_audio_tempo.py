"""Another pace at the same pitch."""

from __future__ import annotations

import numpy as np
import pytest

from ouzel.audio.tempo import HOP, Tempo

RATE = 24_000


def tone(seconds: float, hertz: float = 220.0) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * RATE)) / RATE)).astype(np.float32)


def at_speed(samples: np.ndarray, speed: float, pieces: list[int] | None = None) -> np.ndarray:
    tempo = Tempo(speed)
    parts = [samples] if pieces is None else np.split(samples, pieces)
    return np.concatenate([*(tempo.feed(part) for part in parts), tempo.flush()])


@pytest.mark.parametrize("speed", [0.25, 0.5, 0.9, 1.0, 1.25, 2.0, 3.3, 4.0])
@pytest.mark.parametrize("count", [0, 1, 100, 768, 1920, 48_123])
def test_its_length(speed, count):
    found = at_speed(tone(3)[:count], speed)
    assert found.dtype == np.float32
    assert found.shape == (round(count / speed),)


@pytest.mark.parametrize("speed", [0.25, 0.8, 1.5, 4.0])
def test_the_pitch_stays_and_the_level(speed):
    found = at_speed(tone(3), speed)
    middle = found[len(found) // 4 : 3 * len(found) // 4].astype(np.float64)
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle)), 1 << 18))
    assert abs(spectrum.argmax() * RATE / (1 << 18) - 220) < 1
    assert np.sqrt(np.mean(middle**2)) == pytest.approx(0.5 / np.sqrt(2), rel=0.05)


def test_a_sound_comes_at_its_time():
    samples = np.zeros(2 * RATE, np.float32)
    samples[RATE : RATE + RATE // 10] = tone(0.1, 500)
    for speed in (0.5, 1.0, 2.0):
        loud = np.flatnonzero(np.abs(at_speed(samples, speed)) > 0.1) / RATE
        assert loud[0] == pytest.approx(1 / speed, abs=0.02)
        assert loud[-1] == pytest.approx(1.1 / speed, abs=0.02)


def test_at_its_own_speed_it_is_the_same():
    samples = np.random.default_rng(0).standard_normal(30_000).astype(np.float32) * 0.1
    found = at_speed(samples, 1.0)
    assert np.abs(found - samples)[HOP:].max() < 1e-5  # one window does not reach the first samples


@pytest.mark.parametrize("speed", [0.4, 1.3, 3.0])
def test_it_does_not_matter_how_it_is_cut(speed):
    samples = tone(2) + np.random.default_rng(1).standard_normal(2 * RATE).astype(np.float32) * 0.05
    samples[:9000] = samples[20_000:24_000] = 0
    whole = at_speed(samples, speed)
    for pieces in ([1, 2, 500, 769], list(range(0, 2 * RATE, 1920)), [47_000]):
        assert np.abs(at_speed(samples, speed, pieces) - whole).max() < 1e-4


def test_a_speed_that_is_none():
    with pytest.raises(ValueError, match="above 0"):
        Tempo(0.0)
