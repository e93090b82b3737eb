"""What a checkpoint says about the networks that read a recording (contract 4.5): speaker encoder and codec encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from ...errors import CheckpointError, choose
from .strict import read

# The published config.json gives enc_dim and sample_rate only; the rest is the official class's, and checked against the tensors.
_SPEAKER = {
    "mel_dim": 128,
    "enc_channels": [512, 512, 512, 512, 1536],
    "enc_kernel_sizes": [5, 3, 3, 3, 1],
    "enc_dilations": [1, 2, 3, 4, 1],
    "enc_attention_channels": 128,
    "enc_res2net_scale": 8,
    "enc_se_channels": 128,
}
DOWNSAMPLE = 2  # of the transformer's rows to one codec frame


@dataclass(frozen=True, slots=True)
class SpeakerConfig:
    """`speaker_encoder_config`: an ECAPA-TDNN over mel frames. enc_dim: width of the speaker vector."""

    enc_dim: int
    sample_rate: int
    mel_dim: int
    enc_channels: tuple[int, ...]
    enc_kernel_sizes: tuple[int, ...]
    enc_dilations: tuple[int, ...]
    enc_attention_channels: int
    enc_res2net_scale: int
    enc_se_channels: int

    @classmethod
    def parse(cls, value: Any, hidden_size: int, where: str = "config.json: speaker_encoder_config") -> SpeakerConfig:
        """From a parsed config.json's block. CheckpointError when it does not describe a network for that talker width."""
        config = read(cls, {**_SPEAKER, **value} if isinstance(value, Mapping) else value, where)
        layers = {len(config.enc_channels), len(config.enc_kernel_sizes), len(config.enc_dilations)}
        if len(layers) != 1 or layers.pop() < 3:
            raise CheckpointError(f"{where}: enc_channels, enc_kernel_sizes and enc_dilations must be 3 or more, equally many.")
        numbers = (*config.enc_channels, *config.enc_kernel_sizes, *config.enc_dilations, config.enc_res2net_scale)
        if min(*numbers, config.enc_dim, config.mel_dim, config.sample_rate) < 1:
            raise CheckpointError(f"{where}: every size must be 1 or more.")
        inner = config.enc_channels[:-1]
        if any(k % 2 == 0 for k in config.enc_kernel_sizes) or any(c % config.enc_res2net_scale for c in inner):
            raise CheckpointError(f"{where}: kernel sizes must be odd and enc_channels multiples of enc_res2net_scale.")
        if len(set(inner)) != 1 or sum(inner[1:]) != config.enc_channels[-1]:
            raise CheckpointError(f"{where}: the inner enc_channels must be equal and add up, but for the first, to the last.")
        if config.enc_dim != hidden_size:
            raise CheckpointError(f"{where}: enc_dim is {config.enc_dim}, but the talker's rows have {hidden_size} values.")
        return config


@dataclass(frozen=True, slots=True)
class CodecEncoderConfig:
    """`encoder_config` of `speech_tokenizer/config.json`: a causal convolution stack, a transformer, residual codebooks.

    Its sliding_window is not a field: the official encoder attends to everything before a row.
    """

    audio_channels: int
    codebook_dim: int
    codebook_size: int
    compress: int
    dilation_growth_rate: int
    head_dim: int
    hidden_act: str
    hidden_size: int
    intermediate_size: int
    kernel_size: int
    last_kernel_size: int
    norm_eps: float
    num_attention_heads: int
    num_filters: int
    num_hidden_layers: int
    num_key_value_heads: int
    num_quantizers: int
    num_residual_layers: int
    num_semantic_quantizers: int
    residual_kernel_size: int
    rope_theta: float
    sampling_rate: int
    upsampling_ratios: tuple[int, ...]
    use_causal_conv: bool
    vector_quantization_hidden_dimension: int

    @property
    def hop(self) -> int:
        """Samples a row of the transformer."""
        return prod(self.upsampling_ratios)

    @property
    def strides(self) -> tuple[int, ...]:
        """Of the convolutions, in their order."""
        return self.upsampling_ratios[::-1]

    @classmethod
    def parse(cls, codec: Mapping[str, Any], groups: int, where: str = "speech_tokenizer/config.json") -> CodecEncoderConfig:
        """From a parsed speech_tokenizer/config.json. CheckpointError for an encoder of another build or frame rate."""
        value = codec.get("encoder_config")
        config = read(cls, value, f"{where}: encoder_config")  # type: ignore[arg-type]  # it says what is wrong with the value
        where = f"{where}: encoder_config"
        if config.hidden_act != "gelu":
            raise choose(f"hidden_act in {where}", config.hidden_act, ["gelu"], error=CheckpointError)
        if not config.use_causal_conv or config.audio_channels != 1:
            raise CheckpointError(f"{where}: only a causal encoder of one channel is known.")
        extras = {"use_conv_shortcut": False, "attention_bias": False, "pad_mode": "constant"}
        for key, known in extras.items():
            if (found := (value or {}).get(key, known)) != known:
                raise CheckpointError(f"{where}: {key} {found!r} is not supported; no published Qwen3-TTS model has it.")
        rate = codec.get("encode_downsample_rate")
        if rate != config.hop * DOWNSAMPLE:
            raise CheckpointError(f"{where}: encode_downsample_rate is {rate}, but the strides make {config.hop * DOWNSAMPLE}.")
        valid = codec.get("encoder_valid_num_quantizers")
        if valid != groups or not 0 < config.num_semantic_quantizers < groups <= config.num_quantizers:
            raise CheckpointError(f"{where}: {valid} of {config.num_quantizers} codebooks do not fit frames of {groups} codes.")
        return config
