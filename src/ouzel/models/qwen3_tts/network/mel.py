"""Log-mel frames of a recording inside the network (contract 4.5), so that no runtime needs a Fourier transform of its own."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WINDOW, HOP = 1024, 256  # samples
_FLOOR_POWER, _FLOOR = 1e-9, 1e-5
_LINEAR_HZ, _LINEAR_STEP = 1000.0, 200.0 / 3  # the scale is linear below, and 3 mels are 200 Hz there
_LOG_STEP = math.log(6.4) / 27


class LogMel(nn.Module):
    """samples float32 (n,), n > 384 -> log-mel (1, bands, n // 256), from 0 Hz to half the sample rate.

    The transform is a convolution with windowed cosines and sines. Frame i is centred on sample 256 i + 128.
    """

    def __init__(self, sample_rate: int, bands: int) -> None:
        super().__init__()
        angle = 2 * math.pi / WINDOW * torch.arange(WINDOW, dtype=torch.float64)
        window = 0.5 - 0.5 * angle.cos()
        turns = torch.arange(WINDOW // 2 + 1, dtype=torch.float64)[:, None] * angle
        waves = torch.cat([turns.cos() * window, turns.sin() * window])
        self.waves = nn.Parameter(waves[:, None].float(), requires_grad=False)
        self.filters = nn.Parameter(mel_filters(sample_rate, bands), requires_grad=False)

    def forward(self, samples: Tensor) -> Tensor:
        margin = (WINDOW - HOP) // 2
        x = F.pad(samples[None, None], (margin, margin), mode="reflect")
        real, imaginary = F.conv1d(x, self.waves, stride=HOP).chunk(2, 1)
        magnitude = (real * real + imaginary * imaginary + _FLOOR_POWER).sqrt()
        return (self.filters @ magnitude).clamp(min=_FLOOR).log()


def mel_filters(sample_rate: int, bands: int) -> Tensor:
    """Triangles of unit area (Slaney's Auditory Toolbox), float32 (bands, 513): edges equally spaced on the mel scale."""
    top = _to_mel(sample_rate / 2)
    edges = torch.tensor([_to_hz(top * i / (bands + 1)) for i in range(bands + 2)], dtype=torch.float64)
    bins = torch.arange(WINDOW // 2 + 1, dtype=torch.float64) * (sample_rate / WINDOW)
    rising = (bins - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - bins) / (edges[2:] - edges[1:-1])[:, None]
    area = 2 / (edges[2:] - edges[:-2])[:, None]
    return (torch.minimum(rising, falling).clamp(min=0) * area).float()


def _to_mel(hz: float) -> float:
    if hz < _LINEAR_HZ:
        return hz / _LINEAR_STEP
    return _LINEAR_HZ / _LINEAR_STEP + math.log(hz / _LINEAR_HZ) / _LOG_STEP


def _to_hz(mel: float) -> float:
    corner = _LINEAR_HZ / _LINEAR_STEP
    return mel * _LINEAR_STEP if mel < corner else _LINEAR_HZ * math.exp(_LOG_STEP * (mel - corner))
