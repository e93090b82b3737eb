"""The voice that comes with ouzel, loaded once for all tests that listen to it.

One thread a stage and a fixed schedule, so that samples can be compared to the bit. A build without the voice fails these tests.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from ouzel.api import Voice, load
from ouzel.api.plan import Plan, make_plan, make_request
from ouzel.bundle.store import embedded_bundle

FRAME = 1920  # samples, 80 ms
OVERRUN = 11  # frames that a piece may take beyond its plan
SCHEDULE = "fixed:1/25"
FLOOR = 0.005  # RMS, -46 dBFS: far above the noise of a decoder that has nothing to say, far below quiet speech


@pytest.fixture(scope="session")
def embedded() -> Iterator[Voice]:
    """The embedded voice whatever else the machine has stored."""
    if embedded_bundle() is None:
        pytest.fail("This build has no embedded voice: make voice-export (training/README.md).")
    with load("embedded", schedule=SCHEDULE, threads=1, warm_up=False) as loaded:
        yield loaded


def plan(voice: Voice, text: str, /, **options: object) -> Plan:
    """What the engine is given for `text`; seed 0 unless `options` has one."""
    return make_plan(make_request(text, {"seed": 0, **options}), voice._frontend, voice._sampling, None, voice._text)


def planned(made: Plan) -> list[int]:
    """Frames of each piece, as the front end planned them."""
    return [segment.rows().frames or 0 for segment in made.segments]


def rms(samples: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) if len(samples) else 0.0


def assert_spoken(samples: np.ndarray, frames: list[int]) -> None:
    """Heard, whole and not endless: every planned frame is there, few more are, and all of it is finite and not silence."""
    assert len(samples) % FRAME == 0
    assert sum(frames) <= len(samples) // FRAME <= sum(frames) + OVERRUN * len(frames)
    assert np.isfinite(samples).all()
    assert np.abs(samples).max() <= 1.0
    assert rms(samples) > FLOOR


def usual_pitch(samples: np.ndarray) -> tuple[float, float]:
    """(Hz, strength from 0 to 1) of the peak of the mean autocorrelation of the louder half, in frames of 60 ms.

    Pooled, since a hoarse voice has few frames that tell its pitch alone; noise has a strength near 0.
    """
    window = np.hanning(1440)
    frames = np.lib.stride_tricks.sliding_window_view(samples.astype(np.float64), len(window))[::480] * window
    power = np.abs(np.fft.rfft(frames, 4096)) ** 2
    power[:, np.fft.rfftfreq(4096, 1 / 24000) > 1200] = 0  # breath lies above
    curves = np.fft.irfft(power)
    loud = curves[curves[:, 0] > np.median(curves[:, 0])]
    own = np.fft.irfft(np.abs(np.fft.rfft(window, 4096)) ** 2)
    first, last = 24000 // 400, 24000 // 60
    curve = (loud / loud[:, :1]).mean(axis=0)[first:last] / (own[first:last] / own[0])
    return 24000 / (first + int(curve.argmax())), float(curve.max())
