"""The state of the codec decoder: which tensors, in which order, of which shape; zeros start an utterance.

pre                 (1, 2, codebook_dim)                rows before the convolution in front of the transformer
filled              (1, window - 1)                     1 where the cache holds a frame
keys.i, values.i    (1, kv_heads, window - 1, head_dim) cache of transformer layer i, keys not yet rotated
convnext.i          (1, latent, 1, 6)                   tail of the depthwise convolution of upsampling stage i
enter               (1, latent, 1, 6)                   tail of the first convolution of the waveform part
block.i             (1, decoder_dim >> i, 1, 1)         last column before the transposed convolution of block i
unit.i.j            (1, decoder_dim >> i + 1, 1, 6 d)   tails of its residual units, dilations d = 1, 3, 9; identities have none
leave               (1, decoder_dim >> blocks, 1, 6)    tail of the last convolution
"""

from __future__ import annotations

from collections.abc import Sequence

from ouzel.models.qwen3_tts.config import CodecDecoderConfig

Layout = dict[str, tuple[int, ...]]

PRE_KERNEL = 3  # kernels are fixed by the architecture (contract 6.1), not by the config
KERNEL = 7
DILATIONS = (1, 3, 9)
Units = Sequence[Sequence[int]]  # which of each block's residual units there are, as places in DILATIONS


def state_layout(config: CodecDecoderConfig, units: Units | None = None) -> Layout:
    """Name and shape of every state tensor, in the order of the network's arguments and results. units: None = all."""
    units = [range(len(DILATIONS))] * len(config.upsample_rates) if units is None else units
    past, latent, width = config.sliding_window - 1, config.latent_dim, config.decoder_dim
    cache = (1, config.num_key_value_heads, past, config.head_dim)
    layout: Layout = {"pre": (1, PRE_KERNEL - 1, config.codebook_dim), "filled": (1, past)}
    for i in range(config.num_hidden_layers):
        layout[f"keys.{i}"] = layout[f"values.{i}"] = cache
    for i in range(len(config.upsampling_ratios)):
        layout[f"convnext.{i}"] = (1, latent, 1, KERNEL - 1)
    layout["enter"] = (1, latent, 1, KERNEL - 1)
    for i, places in enumerate(units):
        layout[f"block.{i}"] = (1, width >> i, 1, 1)
        for j in places:
            layout[f"unit.{i}.{j}"] = (1, width >> (i + 1), 1, (KERNEL - 1) * DILATIONS[j])
    layout["leave"] = (1, width >> len(config.upsample_rates), 1, KERNEL - 1)
    return layout
