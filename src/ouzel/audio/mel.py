"""Log-mel frames of a recording (contract 4.5): windows of 1024 samples, 256 apart."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

WINDOW, HOP = 1024, 256  # samples
FLOOR_POWER, FLOOR = 1e-9, 1e-5
_LINEAR_HZ, _LINEAR_STEP = 1000.0, 200.0 / 3  # the scale is linear below, and 3 mels are 200 Hz there
_LOG_STEP = math.log(6.4) / 27


def log_mel(samples: NDArray[np.float32], sample_rate: int, bands: int) -> NDArray[np.float32]:
    """samples (n,), n > 384 -> (n // 256, bands), from 0 Hz to half the sample rate. Frame i is centred on sample 256 i + 128."""
    margin = (WINDOW - HOP) // 2
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(samples, margin, mode="reflect"), WINDOW)[::HOP]
    spectrum = np.fft.rfft(frames * hann())
    magnitude = np.sqrt(spectrum.real**2 + spectrum.imag**2 + FLOOR_POWER)
    energy: NDArray[np.float64] = (magnitude @ mel_filters(sample_rate, bands).T).clip(min=FLOOR)
    return np.log(energy).astype(np.float32)


def hann() -> NDArray[np.float64]:
    """The window, periodic."""
    found: NDArray[np.float64] = 0.5 - 0.5 * np.cos(2 * np.pi / WINDOW * np.arange(WINDOW))
    return found


def mel_filters(sample_rate: int, bands: int) -> NDArray[np.float64]:
    """Triangles of unit area (Slaney's Auditory Toolbox), (bands, 513): edges equally spaced on the mel scale."""
    top = _to_mel(sample_rate / 2)
    edges = np.array([_to_hz(top * i / (bands + 1)) for i in range(bands + 2)])
    bins = np.arange(WINDOW // 2 + 1) * (sample_rate / WINDOW)
    rising = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    area = 2 / (edges[2:] - edges[:-2])[:, None]
    found: NDArray[np.float64] = np.minimum(rising, falling).clip(min=0) * area
    return found


def _to_mel(hz: float) -> float:
    if hz < _LINEAR_HZ:
        return hz / _LINEAR_STEP
    return _LINEAR_HZ / _LINEAR_STEP + math.log(hz / _LINEAR_HZ) / _LOG_STEP


def _to_hz(mel: float) -> float:
    corner = _LINEAR_HZ / _LINEAR_STEP
    return mel * _LINEAR_STEP if mel < corner else _LINEAR_HZ * math.exp(_LOG_STEP * (mel - corner))
