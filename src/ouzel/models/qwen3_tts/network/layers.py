"""Transformer layers with explicit key/value buffers, shared by the talker and the code predictor (contract 5.2, 5.3).

Weights are kept (in, out) and used as `x @ W`, so that an exporter sees the stored tensor itself and no transposed copy.
Shapes: batch 1 everywhere; rows (1, n, hidden); key/value buffers (1, kv_heads, capacity, head_dim), written in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Weights = Mapping[str, Tensor]


class LayerConfig(Protocol):
    """What a stack needs to know; TalkerConfig and PredictorConfig are of this kind."""

    @property
    def hidden_size(self) -> int: ...
    @property
    def intermediate_size(self) -> int: ...
    @property
    def num_hidden_layers(self) -> int: ...
    @property
    def num_attention_heads(self) -> int: ...
    @property
    def num_key_value_heads(self) -> int: ...
    @property
    def head_dim(self) -> int: ...
    @property
    def rms_norm_eps(self) -> float: ...
    @property
    def rope_theta(self) -> float: ...


def rope_tables(positions: int, head_dim: int, theta: float) -> tuple[Tensor, Tensor]:
    """cos and sin, float32 (positions, head_dim / 2), of plain RoPE: the three mrope streams are equal here (contract 5.2)."""
    exponent = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
    angle = torch.outer(torch.arange(positions, dtype=torch.float32), 1.0 / theta**exponent)
    return angle.cos(), angle.sin()


def attend(q: Tensor, k: Tensor, v: Tensor, past_k: Tensor, past_v: Tensor, length: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Store rotated k and v (1, kv_heads, n, d) as rows length-n..length-1 of the buffers, then attend causally from q.

    q (1, heads, n, d), already divided by sqrt(d); returns (1, n, heads * d).
    """
    n, end = q.shape[2], int(length)
    start = end - n
    cos, sin = cos[start:end], sin[start:end]
    past_k[:, :, start:end] = _rotate(k, cos, sin)
    past_v[:, :, start:end] = v
    mask = torch.ones(n, end, dtype=torch.bool).tril(start)
    out = F.scaled_dot_product_attention(
        _rotate(q, cos, sin), past_k[:, :, :end], past_v[:, :, :end], mask, scale=1.0, enable_gqa=True
    )
    return out.transpose(1, 2).flatten(2)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class GroupQueryAttention(torch.autograd.Function):
    """`attend` on (1, n, heads * d) tensors, exported as ONNX Runtime's operator of that name (it, too, works in place).

    Returns the attention (1, n, heads * d) and the two buffers.
    """

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        past_k: Tensor,
        past_v: Tensor,
        length: Tensor,
        cos: Tensor,
        sin: Tensor,
        heads: int,
        kv_heads: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        if torch.onnx.is_in_onnx_export():  # the tracer cannot follow writes in place, and `symbolic` replaces all this
            return q.clone(), past_k.clone(), past_v.clone()
        q, k, v = (t.unflatten(2, (count, -1)).transpose(1, 2) for t, count in ((q, heads), (k, kv_heads), (v, kv_heads)))
        return attend(q, k, v, past_k, past_v, length, cos, sin), past_k, past_v

    @staticmethod
    def symbolic(g: Any, *args: Any) -> Any:
        *tensors, length, cos, sin, heads, kv_heads = args
        last = g.op("Sub", length, g.op("Constant", value_t=torch.tensor([1], dtype=torch.int32)))
        inputs = (*tensors, last, g.op("Squeeze", length), cos, sin)
        name = "com.microsoft::GroupQueryAttention"
        out = g.op(name, *inputs, num_heads_i=heads, kv_num_heads_i=kv_heads, do_rotary_i=1, scale_f=1.0, outputs=3)
        for value, like in zip(out, (tensors[0], tensors[3], tensors[4]), strict=True):
            value.setType(like.type())
        return out


class Linear(nn.Module):
    """x @ weight (+ bias), weight (in, out): a view of the checkpoint's (out, in) tensor, so that 1.7B needs no second copy."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.float().t(), requires_grad=False)
        self.bias = None if bias is None else nn.Parameter(bias.float(), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        y = x @ self.weight
        return y if self.bias is None else y + self.bias


class RmsNorm(nn.Module):
    """x / rms(x) * weight over the last axis, in float32."""

    def __init__(self, weight: Tensor, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.float(), requires_grad=False)
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class Layer(nn.Module):
    """Attention with normed queries and keys, then SwiGLU; `weights` are the checkpoint's tensors of this layer, fused.

    last: nothing attends to the rows it returns, so it returns only the last one.
    """

    def __init__(self, config: LayerConfig, weights: Weights, prefix: str, last: bool) -> None:
        super().__init__()
        self.last = last
        eps = config.rms_norm_eps
        self.heads, self.kv_heads, self.head_dim = config.num_attention_heads, config.num_key_value_heads, config.head_dim
        self.sizes = [count * self.head_dim for count in (self.heads, self.kv_heads, self.kv_heads)]
        self.inner = config.intermediate_size
        self.input_norm = RmsNorm(weights[f"{prefix}.input_layernorm.weight"], eps)
        # The division by sqrt(d) is in the query's norm: ONNX Runtime multiplies q by k over a third slower when it has to scale.
        self.q_norm = RmsNorm(weights[f"{prefix}.self_attn.q_norm.weight"].float() * self.head_dim**-0.5, eps)
        self.k_norm = RmsNorm(weights[f"{prefix}.self_attn.k_norm.weight"], eps)
        self.qkv = Linear(weights[f"{prefix}.self_attn.qkv_proj.weight"])
        self.o = Linear(weights[f"{prefix}.self_attn.o_proj.weight"])
        self.mlp_norm = RmsNorm(weights[f"{prefix}.post_attention_layernorm.weight"], eps)
        self.gate_up = Linear(weights[f"{prefix}.mlp.gate_up_proj.weight"])
        self.down = Linear(weights[f"{prefix}.mlp.down_proj.weight"])

    def forward(
        self, x: Tensor, past_k: Tensor, past_v: Tensor, length: Tensor, cos: Tensor, sin: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = self.qkv(self.input_norm(x)).split(self.sizes, -1)
        q = self.q_norm(q.reshape(1, -1, self.heads, self.head_dim)).reshape(1, -1, self.sizes[0])
        k = self.k_norm(k.reshape(1, -1, self.kv_heads, self.head_dim)).reshape(1, -1, self.sizes[1])
        out, past_k, past_v = GroupQueryAttention.apply(q, k, v, past_k, past_v, length, cos, sin, self.heads, self.kv_heads)
        if self.last:
            x, out = x[:, -1:], out[:, -1:]
        x = x + self.o(out)
        gate, up = self.gate_up(self.mlp_norm(x)).split([self.inner, self.inner], -1)
        return x + self.down(F.silu(gate) * up), past_k, past_v


class Stack(nn.Module):
    """All layers and the final norm; returns the normed last row (1, hidden) and the buffers."""

    def __init__(self, config: LayerConfig, weights: Weights, positions: int) -> None:
        super().__init__()
        count = config.num_hidden_layers
        self.layers = nn.ModuleList(Layer(config, weights, f"layers.{i}", i == count - 1) for i in range(count))
        self.norm = RmsNorm(weights["norm.weight"], config.rms_norm_eps)
        cos, sin = rope_tables(positions, config.head_dim, config.rope_theta)
        self.cos, self.sin = nn.Parameter(cos, requires_grad=False), nn.Parameter(sin, requires_grad=False)

    def forward(self, x: Tensor, length: Tensor, caches: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        out: list[Tensor] = []
        for i, layer in enumerate(self.layers):
            x, k, v = layer(x, caches[2 * i], caches[2 * i + 1], length, self.cos, self.sin)
            out += [k, v]
        return self.norm(x)[:, 0], tuple(out)


def empty_caches(config: LayerConfig, capacity: int) -> tuple[Tensor, ...]:
    """Zeroed buffers of a fresh state: key and value of each layer in turn."""
    shape = (1, config.num_key_value_heads, capacity, config.head_dim)
    return tuple(torch.zeros(shape) for _ in range(2 * config.num_hidden_layers))
