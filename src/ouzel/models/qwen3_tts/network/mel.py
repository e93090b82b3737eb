"""Log-mel frames of a recording inside the network (contract 4.5), so that no runtime needs a Fourier transform of its own."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ouzel.audio.mel import FLOOR, FLOOR_POWER, HOP, WINDOW, hann, mel_filters


class LogMel(nn.Module):
    """`ouzel.audio.mel.log_mel`, samples float32 (n,) -> log-mel (1, bands, n // 256): the transform is a convolution with
    windowed cosines and sines."""

    def __init__(self, sample_rate: int, bands: int) -> None:
        super().__init__()
        turns = 2 * np.pi / WINDOW * np.outer(np.arange(WINDOW // 2 + 1), np.arange(WINDOW))
        waves = np.concatenate([np.cos(turns), np.sin(turns)]) * hann()
        self.waves = nn.Parameter(torch.from_numpy(waves)[:, None].float(), requires_grad=False)
        self.filters = nn.Parameter(torch.from_numpy(mel_filters(sample_rate, bands)).float(), requires_grad=False)

    def forward(self, samples: Tensor) -> Tensor:
        margin = (WINDOW - HOP) // 2
        x = F.pad(samples[None, None], (margin, margin), mode="reflect")
        real, imaginary = F.conv1d(x, self.waves, stride=HOP).chunk(2, 1)
        magnitude = (real * real + imaginary * imaginary + FLOOR_POWER).sqrt()
        return (self.filters @ magnitude).clamp(min=FLOOR).log()
