"""The waveform half of the codec decoder: latent columns in, samples out (contract 6.1).

Snake's factors exp(alpha) are moved into the convolutions around it, which saves two of its five passes over the signal:
inside a block the residual signal is carried multiplied by the first unit's factor (`stream`), and between the two
convolutions of a unit it is multiplied by the second activation's. Only products of weights change, the function does not.
A residual unit whose second convolution is all zeros adds nothing to the signal; it is left out, and so is its state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from ouzel.models.qwen3_tts.config import CodecDecoderConfig
from ouzel.models.qwen3_tts.network.decoder_layers import CausalConv, CausalUpsample, PointConv, ResidualUnit, Snake
from ouzel.models.qwen3_tts.network.decoder_state import DILATIONS


class WaveformBlock(nn.Module):
    """Snake, transposed convolution and up to three residual units."""

    def __init__(
        self, tensors: Mapping[str, Tensor], prefix: str, rate: int, places: Sequence[int], arriving: Tensor, following: str
    ) -> None:
        """places: the residual units there are. arriving: factor (in,) by which the incoming signal is multiplied; the outgoing
        one's is `self.stream`. following: name of the Snake behind the block."""
        super().__init__()
        reader = f"{prefix}{2 + places[0]}.act1" if places else following
        self.stream = tensors[f"{reader}.alpha"].double().exp()
        self.snake = Snake(tensors[f"{prefix}0.alpha"], tensors[f"{prefix}0.beta"], arriving)
        weight, bias = _convolution(tensors, f"{prefix}1")
        weight = weight / arriving[:, None, None] * self.stream[None, :, None]
        self.upsample = CausalUpsample(weight.float(), (bias * self.stream).float(), rate)
        self.units = nn.ModuleList(self._unit(tensors, f"{prefix}{2 + j}.", DILATIONS[j], self.stream) for j in places)

    @staticmethod
    def _unit(tensors: Mapping[str, Tensor], prefix: str, dilation: int, stream: Tensor) -> ResidualUnit:
        inner = tensors[f"{prefix}act2.alpha"].double().exp()
        first = Snake(tensors[f"{prefix}act1.alpha"], tensors[f"{prefix}act1.beta"], stream)
        second = Snake(tensors[f"{prefix}act2.alpha"], tensors[f"{prefix}act2.beta"], inner)
        weight, bias = _convolution(tensors, f"{prefix}conv1")
        conv = CausalConv(_between(weight, stream, inner), (bias * inner).float(), dilation=dilation)
        weight, bias = _convolution(tensors, f"{prefix}conv2")
        return ResidualUnit(first, conv, second, PointConv(_between(weight, inner, stream), (bias * stream).float()))

    def forward(self, x: Tensor, tails: Iterator[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """x (1, in, 1, time) -> (1, in // 2, 1, time * rate); takes its tails from `tails` and returns the new ones."""
        x, tail = self.upsample(self.snake(x), next(tails))
        advanced = [tail]
        for unit in self.units:
            x, tail = unit(x, next(tails))
            advanced.append(tail)
        return x, advanced


class Waveform(nn.Module):
    """Convolution to decoder_dim, one block a rate, Snake and convolution to one channel."""

    def __init__(self, tensors: Mapping[str, Tensor], config: CodecDecoderConfig) -> None:
        """tensors: names below "decoder." of the checkpoint's codec decoder ("0.conv.weight", "1.block.0.alpha" …)."""
        super().__init__()
        blocks = len(config.upsample_rates)
        self.units = [_units(tensors, f"{i + 1}.block.") for i in range(blocks)]
        """Which residual units each block has, as places in DILATIONS."""
        self.enter = CausalConv(tensors["0.conv.weight"], tensors["0.conv.bias"])
        stream = torch.ones(config.decoder_dim, dtype=torch.float64)
        self.blocks = nn.ModuleList()
        for i, rate in enumerate(config.upsample_rates):
            following = f"{i + 2}" if i + 1 == blocks else f"{i + 2}.block.0"
            block = WaveformBlock(tensors, f"{i + 1}.block.", rate, self.units[i], stream, following)
            stream = block.stream
            self.blocks.append(block)
        self.snake = Snake(tensors[f"{blocks + 1}.alpha"], tensors[f"{blocks + 1}.beta"], stream)
        weight, bias = _convolution(tensors, str(blocks + 2))
        self.leave = CausalConv(_between(weight, stream, torch.ones(1)), bias.float())

    def forward(self, x: Tensor, tails: Iterator[Tensor]) -> tuple[Tensor, list[Tensor]]:
        """x (1, latent, 1, time) -> samples (time * product of rates,) in [-1, 1], and the new tails."""
        x, tail = self.enter(x, next(tails))
        advanced = [tail]
        for block in self.blocks:
            x, new = block(x, tails)
            advanced += new
        x, tail = self.leave(self.snake(x), next(tails))
        return x.reshape(-1).clamp(-1.0, 1.0), [*advanced, tail]


def _units(tensors: Mapping[str, Tensor], prefix: str) -> list[int]:
    """The residual units of a block that change the signal."""
    names = [f"{prefix}{2 + j}.conv2.conv." for j in range(len(DILATIONS))]
    return [j for j, name in enumerate(names) if tensors[f"{name}weight"].any() or tensors[f"{name}bias"].any()]


def _convolution(tensors: Mapping[str, Tensor], name: str) -> tuple[Tensor, Tensor]:
    return tensors[f"{name}.conv.weight"].double(), tensors[f"{name}.conv.bias"].double()


def _between(weight: Tensor, before: Tensor, after: Tensor) -> Tensor:
    """weight (out, in, kernel) for a signal that arrives multiplied by `before` (in,) and leaves multiplied by `after` (out,)."""
    return (weight / before[None, :, None] * after[:, None, None]).float()
