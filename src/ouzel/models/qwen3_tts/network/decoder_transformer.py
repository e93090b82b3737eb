"""The sliding-window transformer of the codec decoder with its keys and values as explicit state (contract 6.1).

Rotary attention depends on distances alone. Keys are therefore cached as projected, before rotation, and each call rotates
the window from position 0: no position enters the graph, and an utterance may be of any length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ouzel.models.qwen3_tts.network.layers import Linear, RmsNorm


@dataclass(frozen=True, slots=True)
class Attention:
    """Shape of the attention: heads, key/value heads, head_dim, and the window (a query sees itself and window - 1 before)."""

    heads: int
    kv_heads: int
    head_dim: int
    window: int


@dataclass(frozen=True, slots=True)
class Window:
    """What all layers share in one call of n frames: rotation (window - 1 + n, head_dim) and mask (n, window - 1 + n)."""

    cos: Tensor
    sin: Tensor
    mask: Tensor


class Layer(nn.Module):
    """Attention and SwiGLU with the two layer scales folded into their last projections."""

    def __init__(self, tensors: Mapping[str, Tensor], prefix: str, shape: Attention, epsilon: float) -> None:
        super().__init__()
        self.shape = shape

        def scaled(name: str, scale: Tensor) -> Linear:
            return Linear(scale[:, None] * tensors[f"{prefix}{name}.weight"])

        # The softmax scale is part of the query projection.
        temper = torch.ones((shape.heads + 2 * shape.kv_heads) * shape.head_dim)
        temper[: shape.heads * shape.head_dim] = shape.head_dim**-0.5
        self.project = scaled("self_attn.qkv_proj", temper)
        self.output = scaled("self_attn.o_proj", tensors[f"{prefix}self_attn_layer_scale.scale"])
        self.gate_up = Linear(tensors[f"{prefix}mlp.gate_up_proj.weight"])
        self.down = scaled("mlp.down_proj", tensors[f"{prefix}mlp_layer_scale.scale"])
        self.before_attention = RmsNorm(tensors[f"{prefix}input_layernorm.weight"], epsilon)
        self.before_mlp = RmsNorm(tensors[f"{prefix}post_attention_layernorm.weight"], epsilon)

    def forward(self, x: Tensor, keys: Tensor, values: Tensor, window: Window) -> tuple[Tensor, Tensor, Tensor]:
        """x (1, n, hidden), keys and values (1, kv_heads, window - 1, head_dim) -> the same three, advanced by n frames."""
        shape, past = self.shape, self.shape.window - 1
        heads = self.project(self.before_attention(x)).reshape(1, -1, shape.heads + 2 * shape.kv_heads, shape.head_dim)
        query, key, value = heads.transpose(1, 2).split([shape.heads, shape.kv_heads, shape.kv_heads], 1)
        keys, values = torch.cat([keys, key], 2), torch.cat([values, value], 2)
        query = _rotate(query, window.cos[past:], window.sin[past:])
        scores = query @ self._share(_rotate(keys, window.cos, window.sin)).transpose(2, 3) + window.mask
        mixed = (torch.softmax(scores, -1) @ self._share(values)).transpose(1, 2)
        x = x + self.output(mixed.reshape(1, -1, shape.heads * shape.head_dim))
        gate, up = self.gate_up(self.before_mlp(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up), keys[:, :, -past:], values[:, :, -past:]

    def _share(self, x: Tensor) -> Tensor:
        groups = self.shape.heads // self.shape.kv_heads
        return x if groups == 1 else x.repeat_interleave(groups, 1)


class WindowTransformer(nn.Module):
    """Projection to hidden, the layers, norm and projection back. `max_new`: frames of one call at most (rotation table)."""

    def __init__(
        self,
        tensors: Mapping[str, Tensor],
        shape: Attention,
        *,
        layers: int,
        epsilon: float,
        theta: float,
        max_new: int,
    ) -> None:
        super().__init__()
        self.enter = Linear(tensors["input_proj.weight"], tensors["input_proj.bias"])
        self.layers = nn.ModuleList(Layer(tensors, f"layers.{i}.", shape, epsilon) for i in range(layers))
        self.norm = RmsNorm(tensors["norm.weight"], epsilon)
        self.leave = Linear(tensors["output_proj.weight"], tensors["output_proj.bias"])
        self.past = shape.window - 1
        exponent = torch.arange(0, shape.head_dim, 2, dtype=torch.float64) / shape.head_dim
        angles = torch.outer(torch.arange(self.past + max_new, dtype=torch.float64), theta**-exponent).repeat(1, 2)
        self.cos = nn.Parameter(angles.cos().float(), requires_grad=False)
        self.sin = nn.Parameter(angles.sin().float(), requires_grad=False)
        self.index = nn.Parameter(torch.arange(self.past + max_new), requires_grad=False)

    def forward(self, x: Tensor, filled: Tensor, cache: Sequence[Tensor]) -> tuple[Tensor, Tensor, list[Tensor]]:
        """x (1, n, latent), filled (1, window - 1) of 0 and 1, cache [keys, values] * layers -> the same, advanced."""
        x = self.enter(x)
        total = self.past + x.shape[1]
        filled = torch.cat([filled, torch.ones_like(x[..., 0])], 1)
        position = self.index[:total]
        distance = position[self.past :, None] - position[None]
        seen = ((distance >= 0) & (distance <= self.past)).float() * filled
        window = Window(self.cos[:total], self.sin[:total], (seen - 1.0) * 1e9)
        advanced: list[Tensor] = []
        for i, layer in enumerate(self.layers):
            x, keys, values = layer(x, cache[2 * i], cache[2 * i + 1], window)
            advanced += [keys, values]
        return self.leave(self.norm(x)), filled[:, -self.past :], advanced


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin
