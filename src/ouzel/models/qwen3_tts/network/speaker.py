"""The speaker encoder: a recording in, one vector of the talker's width out (contract 4.5).

ECAPA-TDNN (Desplanques et al. 2020): dilated convolutions over mel frames, squeezed and excited, pooled with attention.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ouzel.audio.mel import HOP, WINDOW
from ouzel.models.qwen3_tts.encoder_config import SpeakerConfig
from ouzel.models.qwen3_tts.network.mel import LogMel

_LEAST_VARIANCE = 1e-12
Tensors = Mapping[str, Tensor]


class SpeakerEncoder(nn.Module):
    """forward(samples) -> vector: float32 (n,) at `spec["sample_rate"]` Hz -> float32 (hidden,)."""

    def __init__(self, config: SpeakerConfig, tensors: Tensors) -> None:
        """tensors: float32, as `Checkpoint.speaker_encoder()` gives them."""
        super().__init__()
        self.mel = LogMel(config.sample_rate, config.mel_dim)
        inner = list(zip(config.enc_kernel_sizes, config.enc_dilations, strict=True))[:-1]
        self.first = Tdnn(tensors, "blocks.0", inner[0][1])
        self.blocks = nn.ModuleList(
            Block(tensors, f"blocks.{i}", config.enc_res2net_scale, dilation)
            for i, (_, dilation) in enumerate(inner[1:], start=1)
        )
        self.gather = Tdnn(tensors, "mfa", config.enc_dilations[-1])
        self.pool = AttentivePool(tensors, "asp")
        self.head = Conv(tensors, "fc")
        margin = max(layer.margin for layer in self.modules() if isinstance(layer, Conv))
        self.spec: dict[str, Any] = {
            "sample_rate": config.sample_rate,
            "hidden_size": config.enc_dim,
            "least_samples": max(WINDOW, HOP * (margin + 1)),  # mirrored is what lies beside the first frame
        }

    def example(self) -> tuple[Tensor]:
        """Arguments to trace `forward` with."""
        return (torch.zeros(8 * WINDOW),)

    def forward(self, samples: Tensor) -> Tensor:
        x = self.first(self.mel(samples))
        found = []
        for block in self.blocks:
            x = block(x)
            found.append(x)
        vector: Tensor = self.head(self.pool(self.gather(torch.cat(found, 1))))
        return vector[0, :, 0]


class Conv(nn.Module):
    """Convolution that keeps the length, its margins mirrored: weight (out, in, kernel) and bias at `name` of the tensors."""

    def __init__(self, tensors: Tensors, name: str, dilation: int = 1) -> None:
        super().__init__()
        self.weight = nn.Parameter(tensors[f"{name}.weight"].contiguous(), requires_grad=False)
        self.bias = nn.Parameter(tensors[f"{name}.bias"].contiguous(), requires_grad=False)
        self.dilation = dilation
        self.margin = (self.weight.shape[-1] - 1) * dilation // 2

    def forward(self, x: Tensor) -> Tensor:
        if self.margin:
            x = F.pad(x, (self.margin, self.margin), mode="reflect")
        return F.conv1d(x, self.weight, self.bias, dilation=self.dilation)


class Tdnn(Conv):
    """A `Conv` behind which negative values are cut."""

    def __init__(self, tensors: Tensors, name: str, dilation: int = 1) -> None:
        super().__init__(tensors, f"{name}.conv", dilation)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(super().forward(x))


class Block(nn.Module):
    """Mix, convolve in groups of which each also hears the one before (Res2Net), mix, weigh the channels, and add."""

    def __init__(self, tensors: Tensors, name: str, groups: int, dilation: int) -> None:
        super().__init__()
        self.groups = groups
        self.into = Tdnn(tensors, f"{name}.tdnn1")
        self.parts = nn.ModuleList(Tdnn(tensors, f"{name}.res2net_block.blocks.{i}", dilation) for i in range(groups - 1))
        self.out = Tdnn(tensors, f"{name}.tdnn2")
        self.squeeze = Conv(tensors, f"{name}.se_block.conv1")
        self.excite = Conv(tensors, f"{name}.se_block.conv2")

    def forward(self, x: Tensor) -> Tensor:
        first, *rest = self.into(x).chunk(self.groups, 1)
        heard = [first]
        for i, (part, group) in enumerate(zip(self.parts, rest, strict=True)):
            heard.append(part(group if i == 0 else group + heard[-1]))
        y = self.out(torch.cat(heard, 1))
        gains = self.excite(F.relu(self.squeeze(y.mean(2, keepdim=True)))).sigmoid()
        return x + y * gains


class AttentivePool(nn.Module):
    """Mean and deviation over time, weighted per channel: (1, channels, time) -> (1, 2 * channels, 1).

    The attention also sees mean and deviation of the whole; being the same in every frame, they are mixed in once.
    """

    def __init__(self, tensors: Tensors, name: str) -> None:
        super().__init__()
        weight = tensors[f"{name}.tdnn.conv.weight"]
        self.frame, self.mean, self.deviation = (
            nn.Parameter(part.contiguous(), requires_grad=False) for part in weight.chunk(3, 1)
        )
        self.bias = nn.Parameter(tensors[f"{name}.tdnn.conv.bias"].contiguous(), requires_grad=False)
        self.attention = Conv(tensors, f"{name}.conv")

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(2, keepdim=True)
        deviation = _root((x - mean).pow(2).mean(2, keepdim=True))
        seen = F.conv1d(x, self.frame, self.bias) + F.conv1d(mean, self.mean) + F.conv1d(deviation, self.deviation)
        weights = self.attention(F.relu(seen).tanh()).softmax(2)
        mean = (weights * x).sum(2, keepdim=True)
        deviation = _root((weights * (x - mean).pow(2)).sum(2, keepdim=True))
        return torch.cat([mean, deviation], 1)


def _root(variance: Tensor) -> Tensor:
    return variance.clamp(min=_LEAST_VARIANCE).sqrt()
