"""The codec encoder: a recording in, codec frames out (contract 4.5), in two networks.

`CodecFeatures` hears no further back than `spec["context"]` rows and nothing that comes later, so a long recording may go
through it in pieces; `CodecCodes` takes the rows of all of it. Padding is that of the official encoder, layer by layer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ouzel.models.qwen3_tts.encoder_config import DOWNSAMPLE, CodecEncoderConfig
from ouzel.models.qwen3_tts.network.decoder_layers import layer_norm
from ouzel.models.qwen3_tts.network.layers import Linear, rope_tables

MAX_ROWS = 2048
"""Rows of one recording at most: 82 s, which bounds the square of the attention."""
_LEAST_USAGE = 1e-5  # floor of a codebook entry's usage count
Tensors = Mapping[str, Tensor]


class CodecFeatures(nn.Module):
    """forward(samples) -> rows: float32 (n,) -> float32 (ceil(n / hop), hidden)."""

    def __init__(self, config: CodecEncoderConfig, tensors: Tensors) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Conv(tensors, "encoder.layers.0.conv")])
        at, reach, step = 1, config.kernel_size - 1, 1
        for stride in config.strides:
            for i in range(config.num_residual_layers):
                self.layers.append(Residual(tensors, f"encoder.layers.{at}", dilation := config.dilation_growth_rate**i))
                reach += step * (config.residual_kernel_size - 1) * dilation
                at += 1
            self.layers.append(Conv(tensors, f"encoder.layers.{at + 1}.conv", stride=stride, active=True))
            reach += step * stride
            at, step = at + 2, step * stride
        self.layers.append(Conv(tensors, f"encoder.layers.{at + 1}.conv", active=True))
        reach += step * (config.last_kernel_size - 1)
        self.hop = config.hop
        self.context = -(-reach // config.hop)

    def example(self) -> tuple[Tensor]:
        return (torch.zeros(4 * self.hop),)

    def forward(self, samples: Tensor) -> Tensor:
        x = samples.reshape(1, 1, 1, -1)
        for layer in self.layers:
            x = layer(x)
        return x[0, :, 0].t()


class CodecCodes(nn.Module):
    """forward(rows) -> codes: float32 (n, hidden) -> int64 (ceil(n / 2), groups), n <= MAX_ROWS."""

    def __init__(self, config: CodecEncoderConfig, tensors: Tensors, groups: int) -> None:
        super().__init__()
        count = config.num_hidden_layers
        self.layers = nn.ModuleList(Layer(config, tensors, f"encoder_transformer.layers.{i}") for i in range(count))
        cos, sin = rope_tables(MAX_ROWS, config.head_dim, config.rope_theta)
        self.cos, self.sin = nn.Parameter(cos, requires_grad=False), nn.Parameter(sin, requires_grad=False)
        self.order = nn.Parameter(torch.arange(MAX_ROWS), requires_grad=False)
        self.down = nn.Parameter(tensors["downsample.conv.weight"].contiguous(), requires_grad=False)
        semantic = config.num_semantic_quantizers
        at = "quantizer.{}_residual_vector_quantizer"
        self.semantic = Quantizer(tensors, at.format("semantic"), semantic)
        self.acoustic = Quantizer(tensors, at.format("acoustic"), groups - semantic)

    def example(self) -> tuple[Tensor]:
        return (torch.zeros(6, self.layers[0].hidden),)

    def forward(self, rows: Tensor) -> Tensor:
        count = rows.shape[0]
        cos, sin, order = self.cos[:count], self.sin[:count], self.order[:count]
        later = order[None, :] > order[:, None]
        x = rows
        for layer in self.layers:
            x = layer(x, cos, sin, later)
        # The margins repeat the outermost rows; one too many on the right makes no further frame.
        x = F.pad(x.t()[None], (self.down.shape[-1] - DOWNSAMPLE, DOWNSAMPLE - 1), mode="replicate")
        x = F.conv1d(x, self.down, stride=DOWNSAMPLE)[0].t()
        return torch.stack([*self.semantic(x), *self.acoustic(x)], 1)


class Conv(nn.Module):
    """Causal convolution on (1, channels, 1, time), zeros before the start and, where a stride is left over, behind the end.

    n columns become ceil(n / stride). active: an ELU comes first. Weight (out, in, kernel) and bias at `name` of the tensors.
    """

    def __init__(self, tensors: Tensors, name: str, *, stride: int = 1, dilation: int = 1, active: bool = False) -> None:
        super().__init__()
        weight = tensors[f"{name}.weight"]
        self.weight = nn.Parameter(weight[:, :, None].contiguous(), requires_grad=False)
        self.bias = nn.Parameter(tensors[f"{name}.bias"].contiguous(), requires_grad=False)
        self.stride, self.dilation, self.active = stride, dilation, active
        # A last window that is all margin but for its end does not fit in stride - 1 more columns, so it makes no output.
        self.margins = ((weight.shape[-1] - 1) * dilation + 1 - stride, stride - 1)

    def forward(self, x: Tensor) -> Tensor:
        x = F.pad(F.elu(x) if self.active else x, self.margins)
        return F.conv2d(x, self.weight, self.bias, stride=(1, self.stride), dilation=(1, self.dilation))


class Residual(nn.Module):
    """x + point(conv(x)), each behind an ELU."""

    def __init__(self, tensors: Tensors, name: str, dilation: int) -> None:
        super().__init__()
        self.conv = Conv(tensors, f"{name}.block.1.conv", dilation=dilation, active=True)
        self.point = Conv(tensors, f"{name}.block.3.conv", active=True)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.point(self.conv(x))
        return x + y


class Layer(nn.Module):
    """Causal attention and a GELU layer on rows (n, hidden); the layer scales are part of the projections."""

    def __init__(self, config: CodecEncoderConfig, tensors: Tensors, name: str) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = config.num_attention_heads, config.num_key_value_heads, config.head_dim
        self.hidden = config.hidden_size
        at = {n.removeprefix(f"{name}."): t for n, t in tensors.items() if n.startswith(f"{name}.")}
        scales = (at[f"{part}_layer_scale.scale"][:, None] for part in ("self_attn", "mlp"))
        self.first, self.second = (
            layer_norm(at[f"{norm}.weight"], at[f"{norm}.bias"], config.norm_eps)
            for norm in ("input_layernorm", "post_attention_layernorm")
        )
        self.qkv = Linear(at["self_attn.qkv_proj.weight"])
        self.out = Linear(next(scales) * at["self_attn.o_proj.weight"])
        self.expand = Linear(at["mlp.fc1.weight"])
        self.contract = Linear(next(scales) * at["mlp.fc2.weight"])

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, later: Tensor) -> Tensor:
        sizes = [count * self.head_dim for count in (self.heads, self.kv_heads, self.kv_heads)]
        q, k, v = (t.unflatten(1, (-1, self.head_dim)).transpose(0, 1) for t in self.qkv(self.first(x)).split(sizes, 1))
        k, v = (t.repeat_interleave(self.heads // self.kv_heads, 0) if self.heads != self.kv_heads else t for t in (k, v))
        scores = _rotate(q, cos, sin) @ _rotate(k, cos, sin).transpose(1, 2) * self.head_dim**-0.5
        seen = scores.masked_fill(later, -torch.inf).softmax(-1) @ v
        x = x + self.out(seen.transpose(0, 1).flatten(1))
        y: Tensor = self.contract(F.gelu(self.expand(self.second(x))))
        return x + y


class Quantizer(nn.Module):
    """Residual vector quantisation: rows (n, hidden) -> one int64 (n,) a codebook, each of what those before left over."""

    def __init__(self, tensors: Tensors, name: str, count: int) -> None:
        super().__init__()
        projection = tensors.get(f"{name}.input_proj.weight")
        self.into = None if projection is None else Linear(projection[..., 0])
        self.books = nn.ParameterList()
        self.halves = nn.ParameterList()
        for i in range(count):
            at = f"{name}.layers.{i}.codebook"
            entries = tensors[f"{at}.embed_sum"] / tensors[f"{at}.cluster_usage"].clamp(min=_LEAST_USAGE)[:, None]
            self.books.append(nn.Parameter(entries, requires_grad=False))
            self.halves.append(nn.Parameter(-0.5 * entries.pow(2).sum(1), requires_grad=False))

    def forward(self, rows: Tensor) -> list[Tensor]:
        rest = rows if self.into is None else self.into(rows)
        found = []
        for entries, half in zip(self.books, self.halves, strict=True):
            nearest = F.linear(rest, entries, half).argmax(1)  # |x - e|^2 = |x|^2 - 2 (x.e - |e|^2 / 2)
            rest = rest - entries[nearest]
            found.append(nearest)
        return found


class CodecEncoder:
    """Both networks of a checkpoint. spec: what the artifact's meta says."""

    def __init__(self, config: CodecEncoderConfig, tensors: Tensors, groups: int) -> None:
        """tensors: float32, as `Checkpoint.codec_encoder()` gives them."""
        self.features = CodecFeatures(config, tensors)
        self.codes = CodecCodes(config, tensors, groups)
        self.spec: dict[str, Any] = {
            "sample_rate": config.sampling_rate,
            "groups": groups,
            "codebook_size": config.codebook_size,
            "hop": config.hop,
            "context": self.features.context,
            "max_rows": MAX_ROWS,
        }


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
