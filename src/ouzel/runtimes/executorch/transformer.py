"""The transformers of talker and code predictor in the form in which XNNPACK takes them whole: two delegates a layer.

The layers and their weights are the networks'. What XNNPACK has no operator for, or not for a number of rows that varies, is said
otherwise: the mean of squares and the rotation's swap of halves are products with constant matrices, and a projection that is
split afterwards is several. Attention is ExecuTorch's own operator; it writes keys and values into buffers of the caller.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def linear(weight: Tensor, bias: Tensor | None = None) -> nn.Linear:
    """nn.Linear around a given weight (in, out), without a copy of it."""
    layer = nn.Linear(*weight.shape, bias=bias is not None, device="meta")
    layer.weight = nn.Parameter(weight.t(), requires_grad=False)
    if bias is not None:
        layer.bias = nn.Parameter(bias, requires_grad=False)
    return layer


class Norm(nn.Module):
    """x / rms(x) * weight over the last axis."""

    def __init__(self, norm: Any) -> None:
        super().__init__()
        self.weight = norm.weight
        self.register_buffer("mean", torch.full((1, norm.weight.shape[0]), 1 / norm.weight.shape[0]))
        self.register_buffer("eps", torch.tensor([norm.eps]))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(F.linear(x * x, self.mean, self.eps)) * self.weight


class Layer(nn.Module):
    """One layer of a network's stack: x (1, n, hidden) -> the same, its key and value buffers written in place."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim, self.last = layer.heads, layer.kv_heads, layer.head_dim, layer.last
        self.q, self.k, self.v = map(linear, layer.qkv.weight.split(layer.sizes, 1))
        self.gate, self.up = map(linear, layer.gate_up.weight.split([layer.inner, layer.inner], 1))
        self.o, self.down = linear(layer.o.weight), linear(layer.down.weight)
        self.input_norm, self.mlp_norm = Norm(layer.input_norm), Norm(layer.mlp_norm)
        self.q_norm, self.k_norm = Norm(layer.q_norm), Norm(layer.k_norm)
        half, swap = self.head_dim // 2, torch.zeros(self.head_dim, self.head_dim)
        swap[:half, half:] = -torch.eye(half)
        swap[half:, :half] = torch.eye(half)
        self.register_buffer("swap", swap)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, start: int, cos: Tensor, sin: Tensor) -> Tensor:
        normed = self.input_norm(x)
        q = self._turned(self.q_norm(self.q(normed).reshape(1, -1, self.heads, self.head_dim)), cos, sin)
        k = self._turned(self.k_norm(self.k(normed).reshape(1, -1, self.kv_heads, self.head_dim)), cos, sin)
        torch.ops.llama.update_cache(k, keys, start)
        torch.ops.llama.update_cache(self.v(normed).reshape(1, -1, self.kv_heads, self.head_dim), values, start)
        # No mask, no dropout, causal; the scale is in the query's norm.
        out = torch.ops.llama.custom_sdpa(q, keys, values, start, None, 0.0, True, 1.0).flatten(2)
        if self.last:
            x, out = x[:, -1:], out[:, -1:]
        x = x + self.o(out)
        normed = self.mlp_norm(x)
        return x + self.down(F.silu(self.gate(normed)) * self.up(normed))

    def _turned(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        return x * cos + F.linear(x, self.swap) * sin


class Transformer(nn.Module):
    """forward(rows, positions, *caches) -> hidden (1, hidden) of the last row, and its logits (1, vocab) where there is a head.

    rows float32 (1, n, input size); positions int64 (n,), one after another; caches as in `executorch.caches`, written in place.
    """

    def __init__(self, stack: Any, *, project: Any = None, head: Any = None) -> None:
        """stack, project, head: of a network; see `Networks` for where they come from."""
        super().__init__()
        self.project = None if project is None else linear(project.weight, project.bias)
        self.layers = nn.ModuleList(map(Layer, stack.layers))
        self.norm = Norm(stack.norm)
        self.head = None if head is None else linear(head.weight)
        self.register_buffer("cos", stack.cos.repeat(1, 2))
        self.register_buffer("sin", stack.sin.repeat(1, 2))

    def forward(self, rows: Tensor, positions: Tensor, *caches: Tensor) -> tuple[Tensor, ...]:
        x = rows if self.project is None else self.project(rows)
        cos, sin = (table.index_select(0, positions)[:, None] for table in (self.cos, self.sin))
        start = positions[0].item()
        torch._check(start >= 0)
        torch._check(start + rows.shape[1] <= caches[0].shape[1])
        for i, layer in enumerate(self.layers):
            x = layer(x, caches[2 * i], caches[2 * i + 1], start, cos, sin)
        hidden = self.norm(x)[:, 0]
        return (hidden,) if self.head is None else (hidden, self.head(hidden))


def recast(module: nn.Module) -> None:
    """Put the norms and products below `module`, a network's own layers, into this form; their weights stay where they are."""
    for name, child in module.named_children():
        weight = getattr(child, "weight", None)
        if isinstance(child, nn.LayerNorm) or weight is None or weight.dim() > 2:
            recast(child)
        elif weight.dim() == 2:
            setattr(module, name, linear(weight, child.bias))
        else:
            setattr(module, name, Norm(child))
