"""The judges of the voice report that need no downloaded model."""

import numpy as np
import pytest
from training.voice.judge import calibrated, mos_windows, package_folder, pitch, pitch_track
from training.voice.speaker import mel_filters, mel_power, without_pauses

RATE = 24000


def tone(hz, seconds: float = 1.0) -> np.ndarray:
    """A buzz like a voice's: harmonics that fall off."""
    phase = 2 * np.pi * np.cumsum(np.broadcast_to(hz, round(seconds * RATE))) / RATE
    return 0.1 * sum(np.sin(k * phase) / k for k in range(1, 9))


@pytest.mark.parametrize("hz", [75.0, 110.0, 180.0, 260.0])
def test_pitch_of_a_steady_tone(hz: float):
    mean, deviation, span = pitch(tone(hz))
    assert mean == pytest.approx(hz, rel=0.005)
    assert deviation < 0.1
    assert span < 0.1


def test_pitch_of_a_glide():
    """An octave, up in equal musical steps: all of it but the ends lies between the percentiles."""
    mean, _, span = pitch(tone(100 * 2 ** np.linspace(0, 1, 2 * RATE), 2.0))
    assert mean == pytest.approx(100 * 2**0.5, rel=0.03)
    assert span == pytest.approx(0.9 * 12, abs=0.6)


def test_pitch_is_timed():
    silence = np.zeros(RATE // 2)
    seconds, hz = pitch_track(np.concatenate([silence, tone(200.0, 0.5), silence]))
    assert seconds.min() == pytest.approx(0.5, abs=0.04)
    assert seconds.max() == pytest.approx(1.0, abs=0.04)
    assert hz == pytest.approx(200.0, rel=0.02)


@pytest.mark.parametrize("audio", [np.zeros(0), np.zeros(RATE), np.random.default_rng(0).normal(0, 0.1, RATE), np.zeros(100)])
def test_no_pitch_in_silence_and_noise(audio: np.ndarray):
    assert pitch(audio) == (0.0, 0.0, 0.0)


def test_mos_polynomials():
    """Values of the published polynomials, worked out by hand."""
    got = calibrated(np.array([[3.0, 3.0, 3.0], [0.0, 0.0, 0.0]]))
    assert got[0] == pytest.approx([2.9120, 3.2464, 2.7835], abs=1e-3)
    assert got[1] == pytest.approx([0.0052, -0.3960, 0.0460], abs=1e-3)


def test_mos_windows_cover_nine_seconds_each():
    assert mos_windows(np.arange(16000.0)).shape == (7, 144160)  # doubled to 16 s
    assert mos_windows(np.zeros(144160)).shape == (1, 144160)
    long = mos_windows(np.arange(16000 * 12.0))
    assert long.shape == (3, 144160)
    assert long[1, 0] == 16000
    short = mos_windows(np.arange(100000.0))
    assert short[0, 100000] == 0  # the utterance begins again


def test_mel_filters():
    filters = mel_filters()
    assert filters.shape == (40, 201)
    assert (filters.max(axis=1) > 0).all()
    peaks = filters.argmax(axis=1)
    assert (np.diff(peaks) >= 0).all()
    # Slaney's scale is linear up to 1 kHz, so the low filters lie equally far apart, and the high ones farther and farther.
    assert peaks[0] * 40 <= 120
    assert 7000 < peaks[-1] * 40 < 8000


def test_mel_power_finds_a_tone():
    mels = mel_power(np.sin(2 * np.pi * 1000 * np.arange(16000) / 16000))
    assert mels.shape == (101, 40)
    assert mels.dtype == np.float32
    middle = (mel_filters() * np.linspace(0, 8000, 201)).sum(axis=1) / mel_filters().sum(axis=1)
    assert abs(middle[mels[50].argmax()] - 1000) < 60


def test_long_pauses_are_cut_short_ones_stay():
    speech = np.random.default_rng(0).normal(0, 0.1, 16000)
    long, short = np.zeros(16000), np.zeros(2400)
    assert len(without_pauses(np.concatenate([speech, long, speech]))) < 2 * len(speech) + 8000
    assert len(without_pauses(np.concatenate([speech, short, speech]))) > 2 * len(speech) + 1500
    assert len(without_pauses(np.zeros(4800))) == 4800


def test_a_missing_package_is_named():
    with pytest.raises(ModuleNotFoundError, match="no_such_judge"):
        package_folder("no_such_judge")
