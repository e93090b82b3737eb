"""The codec decoder as a stateful network: n new frames in, n * samples_per_frame samples out (contract 6.1, 6.3).

What every layer needs of the past is an explicit tensor that goes in and comes out (`decoder_state`), so the output equals the
decode of the whole utterance whatever the chunks, and nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ouzel.models.qwen3_tts.config import CodecConfig, CodecDecoderConfig
from ouzel.models.qwen3_tts.network.decoder_layers import CausalConv, ConvNeXt, RowConv, RowUpsample, layer_norm
from ouzel.models.qwen3_tts.network.decoder_state import state_layout
from ouzel.models.qwen3_tts.network.decoder_transformer import Attention, WindowTransformer
from ouzel.models.qwen3_tts.network.decoder_waveform import Waveform
from ouzel.models.qwen3_tts.network.layers import Linear

if TYPE_CHECKING:
    from ouzel.models.qwen3_tts.checkpoint import Checkpoint

Factors = list[tuple[NDArray[np.float32], NDArray[np.float32]]]

MAX_NEW = 6
"""Frames of one call at most, unless asked otherwise. 4 to 6 cost least a frame with the published codec: fewer read the weights
more often, more push the signals of the last blocks (0.7 MB a frame) out of the caches."""
_MIN_USAGE = 1e-5  # floor of a codebook entry's usage count (contract 6.1)
_NORM_EPSILON = 1e-6  # ConvNeXt's layer norm, fixed by the architecture


class CodecDecoder(nn.Module):
    """forward(codes, *state) -> (samples, *state), the state in the order of `spec["state"]`."""

    def __init__(self, config: CodecConfig, tensors: Mapping[str, Tensor], *, max_new: int = MAX_NEW) -> None:
        """tensors: float32, as `Checkpoint.decoder()` gives them. max_new: n of one forward call is at most this."""
        super().__init__()
        dims = config.decoder
        codebooks, factors = _codebooks(tensors, dims)
        self.codebooks = nn.Parameter(codebooks, requires_grad=False)
        self.factors = {"codebooks": factors}
        """Parameters that are smaller as blocks of rows, each the product of two matrices (float32 arrays)."""
        offsets = torch.arange(dims.num_quantizers) * dims.codebook_size
        self.offsets = nn.Parameter(offsets, requires_grad=False)
        self.pre = RowConv(tensors["pre_conv.conv.weight"], tensors["pre_conv.conv.bias"])
        self.transformer = WindowTransformer(
            _below(tensors, "pre_transformer."),
            Attention(dims.num_attention_heads, dims.num_key_value_heads, dims.head_dim, dims.sliding_window),
            layers=dims.num_hidden_layers,
            epsilon=dims.rms_norm_eps,
            theta=dims.rope_theta,
            max_new=max_new,
        )
        self.upsample = nn.ModuleList()
        self.convnext = nn.ModuleList()
        for i in range(len(dims.upsampling_ratios)):
            at = _below(tensors, f"upsample.{i}.")
            self.upsample.append(RowUpsample(at["0.conv.weight"], at["0.conv.bias"]))
            self.convnext.append(_convnext(_below(at, "1.")))
        self.waveform = Waveform(_below(tensors, "decoder."), dims)
        self.layout = state_layout(dims, self.waveform.units)
        self.spec: dict[str, Any] = {
            "groups": dims.num_quantizers,
            "codebook_size": dims.codebook_size,
            "samples_per_frame": dims.samples_per_frame,
            "sample_rate": config.output_sample_rate,
            "sliding_window": dims.sliding_window,
            "max_new": max_new,
            "state": [{"name": name, "shape": list(shape)} for name, shape in self.layout.items()],
        }

    def zero_state(self) -> list[Tensor]:
        """The state at the start of an utterance."""
        return [torch.zeros(shape) for shape in self.layout.values()]

    def example(self) -> tuple[Tensor, ...]:
        """Arguments to trace `forward` with."""
        return (torch.zeros(2, self.spec["groups"], dtype=torch.int64), *self.zero_state())

    def forward(self, codes: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
        """codes int64 (n, groups), 1 <= n <= max_new -> samples float32 (n * samples_per_frame,) in [-1, 1], new state."""
        tails = iter(state)
        x = torch.nn.functional.embedding(codes + self.offsets, self.codebooks).sum(1).unsqueeze(0)
        x, pre = self.pre(x, next(tails))
        filled = next(tails)
        cache = [next(tails) for _ in range(2 * len(self.transformer.layers))]
        x, filled, cache = self.transformer(x, filled, cache)
        advanced = [pre, filled, *cache]
        for upsample, convnext in zip(self.upsample, self.convnext, strict=True):
            x, tail = convnext(upsample(x), next(tails))
            advanced.append(tail)
        samples, new = self.waveform(x.transpose(1, 2).unsqueeze(2), tails)
        return (samples, *advanced, *new)


def build_decoder(checkpoint: Checkpoint, *, max_new: int = MAX_NEW) -> CodecDecoder:
    """The network with a checkpoint's weights, folded for inference (no gradients)."""
    return CodecDecoder(checkpoint.codec, checkpoint.decoder(), max_new=max_new)


def _codebooks(tensors: Mapping[str, Tensor], dims: CodecDecoderConfig) -> tuple[Tensor, Factors]:
    """All codebooks behind their branch's projection, (groups * codebook_size, codebook_dim): a frame is a sum of rows.

    And each as (entries (codebook_size, n), projection (n, codebook_dim)), where n leaves out columns that are zero in all
    entries: product-quantised codebooks use few, each its own. Codebooks that use all share their branch's projection.
    """
    tables: list[Tensor] = []
    factors: Factors = []
    rest = dims.num_quantizers - dims.num_semantic_quantizers
    for branch, count in (("rvq_first", dims.num_semantic_quantizers), ("rvq_rest", rest)):
        at = _below(tensors, f"quantizer.{branch}.")
        projection = at["output_proj.weight"][..., 0].T.contiguous()
        shared = projection.numpy()
        for i in range(count):
            book = _below(at, f"vq.layers.{i}._codebook.")
            vectors = book["embedding_sum"].double() / book["cluster_usage"].double().clamp(min=_MIN_USAGE)[:, None]
            tables.append((vectors @ projection.double()).float())
            used = vectors.any(0)
            used[0] |= not used.any()  # a product over nothing is no product to a runtime
            factors.append((vectors[:, used].float().numpy(), shared if used.all() else projection[used].numpy()))
    return torch.cat(tables), factors


def _convnext(tensors: Mapping[str, Tensor]) -> ConvNeXt:
    weight, gamma = tensors["dwconv.conv.weight"], tensors["gamma"]
    return ConvNeXt(
        CausalConv(weight, tensors["dwconv.conv.bias"], groups=weight.shape[0]),
        layer_norm(tensors["norm.weight"], tensors["norm.bias"], _NORM_EPSILON),
        Linear(tensors["pwconv1.weight"], tensors["pwconv1.bias"]),
        Linear(gamma[:, None] * tensors["pwconv2.weight"], gamma * tensors["pwconv2.bias"]),
    )


def _below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
