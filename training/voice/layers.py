"""Layers that the trainable talker and the trainable codec decoder share."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Norm(nn.Module):
    """RMS norm over the last axis."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self._epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), self.weight, self._epsilon)


def rotary(start: int, count: int, size: int, theta: float) -> tuple[Tensor, Tensor]:
    """cos and sin (count, size) of positions from `start` on, both halves of a head alike."""
    angles = torch.arange(start, start + count)[:, None] * theta ** (-torch.arange(0, size, 2) / size)
    angles = torch.cat([angles, angles], 1)
    return angles.cos(), angles.sin()


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x (..., count, size) turned by its positions."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin
