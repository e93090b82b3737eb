"""The codec decoder in trainable form: module names are the official tensors', so that its state dict is the checkpoint's.

Residual units start as exact identities (their second convolution is zero) and are trained in the first `units` blocks only,
where time is coarse and they are cheap; the converter drops units that are still identities.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .layers import Norm, rotary, rotated

DILATIONS = (1, 3, 9)
CONFIG: dict[str, Any] = {
    "codebook_dim": 256, "latent_dim": 256, "hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 64, "sliding_window": 24, "rms_norm_eps": 1e-5,
    "rope_theta": 10000, "upsampling_ratios": [2, 2], "upsample_rates": [8, 5, 4, 3], "decoder_dim": 256,
}  # fmt: skip


class Conv(nn.Module):
    """Causal convolution."""

    def __init__(self, inner: int, outer: int, kernel: int, dilation: int = 1, groups: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inner, outer, kernel, dilation=dilation, groups=groups)
        self._pad = (kernel - 1) * dilation

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.pad(x, (self._pad, 0)))


class Up(nn.Module):
    """Causal transposed convolution."""

    def __init__(self, inner: int, outer: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose1d(inner, outer, kernel, stride=stride)
        self._trim = kernel - stride

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        return x[..., : x.shape[-1] - self._trim]


class _Snake(torch.autograd.Function):
    """x + sin(a x)^2 / b with half the memory of the plain form."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(x, a, b)
        sine = torch.sin(x * a)
        return torch.addcmul(x, sine * sine, 1.0 / b)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, a, b = ctx.saved_tensors
        grad = grads[0]
        angle = 2 * a * x
        slope = grad * torch.sin(angle)
        grad_b = -(grad * (0.5 - 0.5 * torch.cos(angle))).sum((0, 2), keepdim=True) / (b * b)
        return torch.addcmul(grad, slope, a / b), (slope * x).sum((0, 2), keepdim=True) / b, grad_b


class Snake(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.zeros(width))
        self.beta = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return _Snake.apply(x, self.alpha.exp()[None, :, None], self.beta.exp()[None, :, None] + 1e-9)


class Unit(nn.Module):
    def __init__(self, width: int, dilation: int, active: bool) -> None:
        super().__init__()
        self.act1, self.conv1 = Snake(width), Conv(width, width, 7, dilation)
        self.act2, self.conv2 = Snake(width), Conv(width, width, 1)
        self.active = active
        nn.init.zeros_(self.conv2.conv.weight)
        nn.init.zeros_(self.conv2.conv.bias)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv2(self.act2(self.conv1(self.act1(x)))) if self.active else x


class Block(nn.Module):
    def __init__(self, width: int, rate: int, active: bool) -> None:
        super().__init__()
        out = width // 2
        self.block = nn.ModuleList([Snake(width), Up(width, out, 2 * rate, rate), *(Unit(out, d, active) for d in DILATIONS)])

    def forward(self, x: Tensor) -> Tensor:
        for part in self.block:
            x = part(x)
        return x


class ConvNeXt(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.dwconv = Conv(width, width, 7, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.pwconv1, self.pwconv2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.gamma = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        y = self.pwconv2(F.gelu(self.pwconv1(self.norm(self.dwconv(x).transpose(1, 2)))))
        return x + (self.gamma * y).transpose(1, 2)


class Scale(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((width,), 0.1))


class Layer(nn.Module):
    def __init__(self, c: dict[str, Any]) -> None:
        super().__init__()
        width, inner, heads, size = c["hidden_size"], c["intermediate_size"], c["num_attention_heads"], c["head_dim"]
        self.input_layernorm, self.post_attention_layernorm = Norm(width, c["rms_norm_eps"]), Norm(width, c["rms_norm_eps"])
        self.self_attn = nn.ModuleDict({f"{n}_proj": nn.Linear(width, heads * size, bias=False) for n in "qkv"})
        self.self_attn["o_proj"] = nn.Linear(heads * size, width, bias=False)
        self.self_attn_layer_scale, self.mlp_layer_scale = Scale(width), Scale(width)
        self.mlp = nn.ModuleDict({f"{n}_proj": nn.Linear(width, inner, bias=False) for n in ("gate", "up")})
        self.mlp["down_proj"] = nn.Linear(inner, width, bias=False)
        self._heads = heads

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor) -> Tensor:
        y = self.input_layernorm(x)
        q, k, v = (self.self_attn[f"{n}_proj"](y).unflatten(2, (self._heads, -1)).transpose(1, 2) for n in "qkv")
        y = F.scaled_dot_product_attention(rotated(q, cos, sin), rotated(k, cos, sin), v, attn_mask=mask)
        x = x + self.self_attn_layer_scale.scale * self.self_attn["o_proj"](y.transpose(1, 2).flatten(2))
        y = self.post_attention_layernorm(x)
        y = self.mlp["down_proj"](F.silu(self.mlp["gate_proj"](y)) * self.mlp["up_proj"](y))
        return x + self.mlp_layer_scale.scale * y


class Transformer(nn.Module):
    def __init__(self, c: dict[str, Any]) -> None:
        super().__init__()
        self.input_proj = nn.Linear(c["latent_dim"], c["hidden_size"])
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["num_hidden_layers"]))
        self.norm = Norm(c["hidden_size"], c["rms_norm_eps"])
        self.output_proj = nn.Linear(c["hidden_size"], c["latent_dim"])
        self._window, self._size, self._theta = c["sliding_window"], c["head_dim"], c["rope_theta"]

    def forward(self, x: Tensor) -> Tensor:
        at = torch.arange(x.shape[1])
        cos, sin = rotary(0, x.shape[1], self._size, self._theta)
        back = at[:, None] - at
        mask = (back >= 0) & (back < self._window)
        x = self.input_proj(x)
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        return self.output_proj(self.norm(x))


class Vocoder(nn.Module):
    """vectors (B, 128, T): the quantiser's sums -> samples (B, 1920 T). units: blocks whose residual units are trained."""

    def __init__(self, config: dict[str, Any], units: int) -> None:
        super().__init__()
        latent, width = config["latent_dim"], config["decoder_dim"]
        self.proj = nn.Conv1d(config["codebook_dim"] // 2, config["codebook_dim"], 1, bias=False)
        self.pre_conv = Conv(config["codebook_dim"], latent, 3)
        self.pre_transformer = Transformer(config)
        self.upsample = nn.ModuleList(
            nn.ModuleList([Up(latent, latent, ratio, ratio), ConvNeXt(latent)]) for ratio in config["upsampling_ratios"]
        )
        blocks: list[nn.Module] = [Conv(latent, width, 7)]
        for index, rate in enumerate(config["upsample_rates"]):
            blocks.append(Block(width, rate, index < units))
            width //= 2
        self.decoder = nn.ModuleList([*blocks, Snake(width), Conv(width, 1, 7)])

    def forward(self, vectors: Tensor) -> Tensor:
        x = self.pre_conv(self.proj(vectors))
        x = self.pre_transformer(x.transpose(1, 2)).transpose(1, 2)
        for up, mix in self.upsample:
            x = mix(up(x))
        for part in self.decoder:
            x = part(x)
        return x[:, 0]
