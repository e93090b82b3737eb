"""Every tensor of the speaker encoder and of the codec encoder with its shape, worked out from their configs.

A checkpoint has all tensors of an encoder or none. The codec encoder of the published ones has further codebooks, unread.
"""

from __future__ import annotations

from .encoder_config import DOWNSAMPLE, CodecEncoderConfig, SpeakerConfig
from .tensors import Shapes

SPEAKER, CODEC = "speaker_encoder.", "encoder."


def speaker_shapes(c: SpeakerConfig) -> Shapes:
    """All of `speaker_encoder.*`."""
    shapes: Shapes = {}

    def conv(name: str, out: int, into: int, kernel: int = 1) -> None:
        shapes[f"{SPEAKER}{name}.weight"] = (out, into, kernel)
        shapes[f"{SPEAKER}{name}.bias"] = (out,)

    width, last, part = c.enc_channels[0], c.enc_channels[-1], c.enc_channels[0] // c.enc_res2net_scale
    conv("blocks.0.conv", width, c.mel_dim, c.enc_kernel_sizes[0])
    for i in range(1, len(c.enc_channels) - 1):
        at = f"blocks.{i}."
        conv(at + "tdnn1.conv", width, width)
        for j in range(c.enc_res2net_scale - 1):
            conv(f"{at}res2net_block.blocks.{j}.conv", part, part, c.enc_kernel_sizes[i])
        conv(at + "tdnn2.conv", width, width)
        conv(at + "se_block.conv1", c.enc_se_channels, width)
        conv(at + "se_block.conv2", width, c.enc_se_channels)
    conv("mfa.conv", last, last, c.enc_kernel_sizes[-1])
    conv("asp.tdnn.conv", c.enc_attention_channels, 3 * last)
    conv("asp.conv", last, c.enc_attention_channels)
    conv("fc", c.enc_dim, 2 * last)
    return shapes


def codec_encoder_shapes(c: CodecEncoderConfig, quantizers: int | None = None) -> Shapes:
    """The tensors `encoder.*` of `speech_tokenizer/model.safetensors` up to that many codebooks (None: all)."""
    shapes = _convolutions(c)
    hidden, q, kv = c.hidden_size, c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim
    for i in range(c.num_hidden_layers):
        at = f"{CODEC}encoder_transformer.layers.{i}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{at}{norm}.weight"] = shapes[f"{at}{norm}.bias"] = (hidden,)
        shapes[at + "self_attn.q_proj.weight"] = (q, hidden)
        shapes[at + "self_attn.k_proj.weight"] = shapes[at + "self_attn.v_proj.weight"] = (kv, hidden)
        shapes[at + "self_attn.o_proj.weight"] = (hidden, q)
        shapes[at + "mlp.fc1.weight"] = (c.intermediate_size, hidden)
        shapes[at + "mlp.fc2.weight"] = (hidden, c.intermediate_size)
        shapes[at + "self_attn_layer_scale.scale"] = shapes[at + "mlp_layer_scale.scale"] = (hidden,)
    shapes[f"{CODEC}downsample.conv.weight"] = (hidden, hidden, 2 * DOWNSAMPLE)
    semantic = c.num_semantic_quantizers
    count = c.num_quantizers if quantizers is None else quantizers
    width = c.vector_quantization_hidden_dimension
    for branch, books in (("semantic", semantic), ("acoustic", count - semantic)):
        at = f"{CODEC}quantizer.{branch}_residual_vector_quantizer."
        if width != hidden:
            shapes[at + "input_proj.weight"] = (width, hidden, 1)
        if width != hidden and quantizers is None:
            shapes[at + "output_proj.weight"] = (hidden, width, 1)  # used when decoding only
        for i in range(books):
            shapes[f"{at}layers.{i}.codebook.embed_sum"] = (c.codebook_size, c.codebook_dim)
            shapes[f"{at}layers.{i}.codebook.cluster_usage"] = (c.codebook_size,)
            if quantizers is None:
                shapes[f"{at}layers.{i}.codebook.initialized"] = (1,)  # of training
    return shapes


def _convolutions(c: CodecEncoderConfig) -> Shapes:
    shapes: Shapes = {}

    def conv(name: str, out: int, into: int, kernel: int) -> None:
        shapes[f"{CODEC}encoder.layers.{name}.conv.weight"] = (out, into, kernel)
        shapes[f"{CODEC}encoder.layers.{name}.conv.bias"] = (out,)

    conv("0", c.num_filters, 1, c.kernel_size)
    at, width = 1, c.num_filters
    for stride in c.strides:
        for _ in range(c.num_residual_layers):
            conv(f"{at}.block.1", width // c.compress, width, c.residual_kernel_size)
            conv(f"{at}.block.3", width, width // c.compress, 1)
            at += 1
        conv(str(at + 1), 2 * width, width, 2 * stride)  # behind an activation
        at, width = at + 2, 2 * width
    conv(str(at + 1), c.hidden_size, width, c.last_kernel_size)
    return shapes
