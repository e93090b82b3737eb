"""Causal convolution layers of the codec decoder, each with its left context as an explicit tensor.

Signals are float32 (1, channels, 1, time): two-dimensional convolutions of height one, because that is the form for which
inference runtimes have blocked kernels (ONNX Runtime's one-dimensional convolution unfolds its input, a fifth slower).
A `tail` holds the last input columns of the call before; zeros are the padding at the start of an utterance.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ouzel.models.qwen3_tts.network.layers import Linear

Tail = tuple[Tensor, Tensor]  # (output, new tail)


class CausalConv(nn.Module):
    """Convolution over the past: weight (out, in // groups, kernel), bias (out,). Tail: (1, in, 1, (kernel - 1) * dilation)."""

    def __init__(self, weight: Tensor, bias: Tensor, *, dilation: int = 1, groups: int = 1) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight[:, :, None, :].contiguous(), requires_grad=False)
        self.bias = nn.Parameter(bias.contiguous(), requires_grad=False)
        self.dilation, self.groups = dilation, groups
        self.context = (weight.shape[-1] - 1) * dilation

    def forward(self, x: Tensor, tail: Tensor) -> Tail:
        x = torch.cat([tail, x], -1)
        y = F.conv2d(x, self.weight, self.bias, dilation=(1, self.dilation), groups=self.groups)
        return y, x[..., -self.context :]


class RowConv(nn.Module):
    """The same convolution on few wide rows, as one matrix product: x (1, time, in), weight (out, in, kernel), bias (out,).

    Tail: (1, kernel - 1, in).
    """

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.taps = weight.shape[-1]
        self.product = Linear(weight.transpose(1, 2).flatten(1), bias)

    def forward(self, x: Tensor, tail: Tensor) -> Tail:
        steps = x.shape[1]
        x = torch.cat([tail, x], 1)
        unfolded = torch.cat([x[:, tap : tap + steps] for tap in range(self.taps)], -1)
        return self.product(unfolded), x[:, -(self.taps - 1) :]


class RowUpsample(nn.Module):
    """Transposed convolution whose kernel equals its stride: x (1, time, in) -> (1, time * stride, out); no context.

    weight: (in, out, stride), bias: (out,).
    """

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.stride = weight.shape[-1]
        self.product = Linear(weight.permute(2, 1, 0).flatten(0, 1), bias.repeat(self.stride))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.product(x)
        return y.reshape(1, -1, y.shape[-1] // self.stride)


class PointConv(nn.Module):
    """Convolution of kernel 1: weight (out, in, 1), bias (out,). It has no context."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight[:, :, None, :].contiguous(), requires_grad=False)
        self.bias = nn.Parameter(bias.contiguous(), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight, self.bias)


class CausalUpsample(nn.Module):
    """Transposed convolution of stride s and kernel 2 s with its last s columns cut, as an ordinary one that makes s phases.

    y[t s + j] = W[:, :, j]^T x[t] + W[:, :, s + j]^T x[t - 1] + b, so the context is one input column and not an overlap
    of output samples. weight: (in, out, 2 s), bias: (out,). Tail: (1, in, 1, 1).
    """

    def __init__(self, weight: Tensor, bias: Tensor, stride: int) -> None:
        super().__init__()
        rows, self.channels, _ = weight.shape
        self.stride = stride
        taps = weight.view(rows, self.channels, 2, stride).flip(2)  # the newest column is the last tap
        phases = taps.permute(1, 3, 0, 2).reshape(self.channels * stride, rows, 2)
        self.conv = CausalConv(phases, bias.repeat_interleave(stride))

    def forward(self, x: Tensor, tail: Tensor) -> Tail:
        y, tail = self.conv(x, tail)
        y = y.reshape(1, self.channels, self.stride, -1).transpose(2, 3)
        return y.reshape(1, self.channels, 1, -1), tail


class Snake(nn.Module):
    """x + gain * sin^2(scale * x), per channel; `scale` None means that the layer before already multiplied by it.

    With `stream` (channels,) the signal that arrives is stream * x, and what leaves is stream times the true value.
    """

    def __init__(self, alpha: Tensor, beta: Tensor, stream: Tensor) -> None:
        super().__init__()
        scale = alpha.double().exp() / stream
        gain = stream / (beta.double().exp() + 1e-9)
        scaled = not bool(torch.all(scale == 1.0))
        self.scale = _column(scale) if scaled else None
        self.gain = _column(gain)

    def forward(self, x: Tensor) -> Tensor:
        sine = torch.sin(x if self.scale is None else x * self.scale)
        return x + sine * sine * self.gain


class ResidualUnit(nn.Module):
    """x + point(snake(conv(snake(x)))), one dilation (contract 6.1)."""

    def __init__(self, first: Snake, conv: CausalConv, second: Snake, point: PointConv) -> None:
        super().__init__()
        self.first, self.conv, self.second, self.point = first, conv, second, point

    def forward(self, x: Tensor, tail: Tensor) -> Tail:
        y, tail = self.conv(self.first(x), tail)
        return x + self.point(self.second(y)), tail


class ConvNeXt(nn.Module):
    """Depthwise convolution, layer norm, fourfold GELU layer and residual, on (1, time, channels). Tail: (1, channels, 1, 6).

    The layer scale `gamma` of the checkpoint is part of the second projection.
    """

    def __init__(self, depthwise: CausalConv, norm: nn.LayerNorm, expand: Linear, contract: Linear) -> None:
        super().__init__()
        self.depthwise, self.norm, self.expand, self.contract = depthwise, norm, expand, contract

    def forward(self, x: Tensor, tail: Tensor) -> Tail:
        y, tail = self.depthwise(x.transpose(1, 2).unsqueeze(2), tail)
        y = self.norm(y.squeeze(2).transpose(1, 2))
        return x + self.contract(F.gelu(self.expand(y))), tail


def layer_norm(weight: Tensor, bias: Tensor, epsilon: float) -> nn.LayerNorm:
    """nn.LayerNorm over the last axis around given tensors."""
    layer = nn.LayerNorm(weight.shape[0], eps=epsilon, device="meta")
    layer.weight = nn.Parameter(weight, requires_grad=False)
    layer.bias = nn.Parameter(bias, requires_grad=False)
    return layer


def _column(values: Tensor) -> nn.Parameter:
    return nn.Parameter(values.float().reshape(1, -1, 1, 1), requires_grad=False)
