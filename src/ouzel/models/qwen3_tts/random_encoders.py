"""The networks that read a recording, in random checkpoints: configs and weights of speaker encoder and codec encoder."""

from __future__ import annotations

import math
from typing import Any

Json = dict[str, Any]
# channels (but for the last, which is three of them), channels of attention and of squeezing, groups
SPEAKERS = {"nano": (16, 8, 8, 4), "tiny": (32, 16, 16, 8)}
# filters, transformer, width and number of codebooks
ENCODERS: dict[str, Json] = {
    "nano": {
        "num_filters": 4,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "num_hidden_layers": 1,
        "codebook_dim": 16,
        "num_quantizers": 16,
    },
    "tiny": {
        "num_filters": 8,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "num_hidden_layers": 2,
        "codebook_dim": 32,
        "num_quantizers": 18,
    },
}
PUBLISHED: Json = {
    "num_filters": 64,
    "hidden_size": 512,
    "intermediate_size": 2048,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "num_hidden_layers": 8,
    "codebook_dim": 256,
    "num_quantizers": 32,
}


def speaker_config(size: str) -> Json:
    """What joins `speaker_encoder_config`; the published one leaves it to the official class."""
    if size not in SPEAKERS:
        return {}
    width, attention, squeeze, groups = SPEAKERS[size]
    return {
        "mel_dim": 128,
        "enc_channels": [width] * 4 + [3 * width],
        "enc_kernel_sizes": [5, 3, 3, 3, 1],
        "enc_dilations": [1, 2, 3, 4, 1],
        "enc_attention_channels": attention,
        "enc_res2net_scale": groups,
        "enc_se_channels": squeeze,
    }


def encoder_config(size: str, codebook_size: int, sample_rate: int) -> Json:
    """`encoder_config` of `speech_tokenizer/config.json`."""
    sizes = ENCODERS.get(size, PUBLISHED)
    return {
        **sizes,
        "_frame_rate": 12.5,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "audio_channels": 1,
        "codebook_size": codebook_size,
        "compress": 2,
        "dilation_growth_rate": 2,
        "hidden_act": "gelu",
        "kernel_size": 7,
        "last_kernel_size": 3,
        "layer_scale_initial_scale": 0.01,
        "max_position_embeddings": 8000,
        "norm_eps": 1e-5,
        "num_residual_layers": 1,
        "num_semantic_quantizers": 1,
        "residual_kernel_size": 3,
        "rope_theta": 10000.0,
        "sampling_rate": sample_rate,
        "sliding_window": 250,
        "trim_right_ratio": 1.0,
        "upsample_groups": sizes["hidden_size"],
        "upsampling_ratios": [8, 6, 5, 4],
        "use_causal_conv": True,
        "use_conv_shortcut": False,
        "vector_quantization_hidden_dimension": sizes["codebook_dim"],
    }


def encoder_scale(name: str, shape: tuple[int, ...]) -> float:
    """Standard deviation of a matrix or convolution of `speaker_encoder.*` or `encoder.*`."""
    leaf, fan_in = name.rsplit(".", 1)[-1], math.prod(shape[1:])
    if leaf == "embed_sum":
        return 0.5  # near what the projection before it makes, so that no few entries win
    # rectified signals lose half of their power in each layer
    return math.sqrt((2.0 if "conv" in name and "downsample" not in name else 1.0) / fan_in)
