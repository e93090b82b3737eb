"""What a codec frame describes: the smooth spectrum of 80 ms at 100 Hz, its pitch and its voicing. Nothing is learned.

The spectral envelope is the power spectrum averaged over one harmonic spacing around each frequency (the teacher's own pitch is
known), so that harmonics, which the pitch already tells, do not cost codes.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from .teacher import SAMPLE_RATE, STEP

Array = NDArray[np.float32]

HOP = 240  # 100 Hz
FRAME = 1920  # 80 ms
SUB = FRAME // HOP
BANDS = 64
FFT = 1024
WINDOW = 768
FLOOR = 1e-4  # of full scale: -80 dB
VOICED_HZ = 30.0  # the teacher's curve falls towards 0 where nothing is voiced
UNVOICED_WIDTH = 120.0  # Hz of smoothing there
PITCH_WEIGHT, VOICING_WEIGHT = 24.0, 4.0  # beside nepers of 64 bands
REFERENCE_HZ = 150.0
SIZE = SUB * BANDS + 2 * (SUB // 2)  # of a frame's features


def mel_bank(size: int = FFT, bands: int = BANDS, low: float = 40.0) -> torch.Tensor:
    """(bands, size / 2 + 1) triangles of unit sum."""

    def mel(hz: float) -> float:
        return 2595 * math.log10(1 + hz / 700)

    edges = [700 * (10 ** (m / 2595) - 1) for m in np.linspace(mel(low), mel(SAMPLE_RATE / 2), bands + 2)]
    grid = torch.linspace(0, SAMPLE_RATE / 2, size // 2 + 1)
    bank = torch.stack(
        [
            torch.minimum((grid - edges[i]) / (edges[i + 1] - edges[i]), (edges[i + 2] - grid) / (edges[i + 2] - edges[i + 1]))
            for i in range(bands)
        ]
    ).clamp(min=0)
    empty = bank.sum(1) == 0
    for band in torch.nonzero(empty)[:, 0].tolist():
        bank[band, round(edges[band + 1] / (SAMPLE_RATE / size))] = 1
    return bank / bank.sum(1, keepdim=True)


_BANK = mel_bank()
_HANN = torch.hann_window(WINDOW)


def envelope(audio: Array, pitch: Array) -> Array:
    """audio (n,) at 24 kHz; pitch (steps,) Hz at 80 Hz. Returns (n // 240, 64) log magnitudes of a full-scale sine's scale."""
    wave = torch.from_numpy(np.ascontiguousarray(audio, np.float32))
    count = len(wave) // HOP
    left = (WINDOW - HOP) // 2
    frames = F.pad(wave, (left, WINDOW)).unfold(0, WINDOW, HOP)[:count] * _HANN
    power = torch.fft.rfft(frames, FFT).abs().square()
    at = ((torch.arange(count) * HOP + HOP / 2) / STEP).long().clamp(max=len(pitch) - 1)
    hz = torch.from_numpy(pitch)[at]
    width = torch.where(hz > VOICED_HZ, hz.clamp(min=60), torch.full_like(hz, UNVOICED_WIDTH)) / (SAMPLE_RATE / FFT)
    total = F.pad(power.cumsum(1), (1, 0))
    centre = torch.arange(power.shape[1]) + 0.5
    low = (centre - width[:, None] / 2).clamp(0, power.shape[1])
    high = (centre + width[:, None] / 2).clamp(0, power.shape[1])
    smooth = (_between(total, high) - _between(total, low)) / (high - low)
    scale = float(_HANN.sum()) / 2
    return (((_BANK @ smooth.T).T.clamp(min=0)).sqrt() / scale + FLOOR).log().numpy()


def _between(total: torch.Tensor, where: torch.Tensor) -> torch.Tensor:
    below = where.floor().long().clamp(max=total.shape[1] - 2)
    part = where - below
    return total.gather(1, below) * (1 - part) + total.gather(1, below + 1) * part


def pitch_and_voicing(pitch: Array, count: int, start: int = 0) -> tuple[Array, Array]:
    """Log pitch (relative to 150 Hz, bridged where unvoiced) and voicing 0..1 at 50 Hz, (count,) each; start in samples."""
    voiced = pitch > VOICED_HZ
    steps = (start + (np.arange(count) + 0.5) * 2 * HOP) / STEP - 0.5
    grid = np.arange(len(pitch))
    if voiced.any():
        log = np.interp(steps, grid[voiced], np.log(np.maximum(pitch[voiced], 50.0) / REFERENCE_HZ))
    else:
        log = np.zeros(count)
    return log.astype(np.float32), np.interp(steps, grid, voiced.astype(np.float32)).astype(np.float32)


def frames(spectrum: Array, log_pitch: Array, voicing: Array) -> Array:
    """spectrum (8 n, 64), log_pitch and voicing (4 n,) -> (n, SIZE) weighted features of codec frames."""
    count = len(spectrum) // SUB
    parts = (
        spectrum[: count * SUB].reshape(count, SUB * BANDS),
        log_pitch[: count * SUB // 2].reshape(count, SUB // 2) * PITCH_WEIGHT,
        voicing[: count * SUB // 2].reshape(count, SUB // 2) * VOICING_WEIGHT,
    )
    return np.concatenate(parts, axis=1).astype(np.float32)
