"""Every tensor of a Qwen3-TTS checkpoint with its shape, worked out from the configs.

The reader uses the tables to refuse a checkpoint that does not fit its own config, the writer of random checkpoints to
know what to write. `STACKED` lists which tensors the network code gets as one.
"""

from __future__ import annotations

from .config import CodecDecoderConfig, PredictorConfig, TalkerConfig

Shape = tuple[int, ...]
Shapes = dict[str, Shape]

TALKER, PREDICTOR, DECODER = "talker.", "talker.code_predictor.", "decoder."

# fused name <- parts, in the order in which their rows follow each other
STACKED: dict[str, tuple[str, ...]] = {
    "self_attn.qkv_proj": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "mlp.gate_up_proj": ("mlp.gate_proj", "mlp.up_proj"),
}


def model_shapes(talker: TalkerConfig) -> Shapes:
    """All of `model.safetensors` that is read: talker, embeddings, text projection, code predictor."""
    hidden, text = talker.hidden_size, talker.text_hidden_size
    shapes: Shapes = {
        "talker.model.text_embedding.weight": (talker.text_vocab_size, text),
        "talker.model.codec_embedding.weight": (talker.vocab_size, hidden),
        "talker.text_projection.linear_fc1.weight": (text, text),
        "talker.text_projection.linear_fc1.bias": (text,),
        "talker.text_projection.linear_fc2.weight": (hidden, text),
        "talker.text_projection.linear_fc2.bias": (hidden,),
        "talker.codec_head.weight": (talker.vocab_size, hidden),
        "talker.model.norm.weight": (hidden,),
    }
    shapes |= _layers("talker.model.", talker)
    predictor = talker.predictor
    for i in range(predictor.num_code_groups - 1):
        # the residual embeddings have the talker's width: they are summed into its input row (contract 5.1)
        shapes[f"{PREDICTOR}model.codec_embedding.{i}.weight"] = (predictor.vocab_size, hidden)
        shapes[f"{PREDICTOR}lm_head.{i}.weight"] = (predictor.vocab_size, predictor.hidden_size)
    if talker.projects_to_predictor:
        shapes[f"{PREDICTOR}small_to_mtp_projection.weight"] = (predictor.hidden_size, hidden)
        shapes[f"{PREDICTOR}small_to_mtp_projection.bias"] = (predictor.hidden_size,)
    shapes[f"{PREDICTOR}model.norm.weight"] = (predictor.hidden_size,)
    return shapes | _layers(f"{PREDICTOR}model.", predictor)


def _layers(prefix: str, c: TalkerConfig | PredictorConfig) -> Shapes:
    shapes: Shapes = {}
    q, kv = c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim
    for i in range(c.num_hidden_layers):
        at = f"{prefix}layers.{i}."
        shapes |= _attention_and_mlp(at, c.hidden_size, c.intermediate_size, q, kv)
        shapes[at + "self_attn.q_norm.weight"] = (c.head_dim,)
        shapes[at + "self_attn.k_norm.weight"] = (c.head_dim,)
    return shapes


def _attention_and_mlp(at: str, hidden: int, inner: int, q: int, kv: int) -> Shapes:
    return {
        at + "input_layernorm.weight": (hidden,),
        at + "self_attn.q_proj.weight": (q, hidden),
        at + "self_attn.k_proj.weight": (kv, hidden),
        at + "self_attn.v_proj.weight": (kv, hidden),
        at + "self_attn.o_proj.weight": (hidden, q),
        at + "post_attention_layernorm.weight": (hidden,),
        at + "mlp.gate_proj.weight": (inner, hidden),
        at + "mlp.up_proj.weight": (inner, hidden),
        at + "mlp.down_proj.weight": (hidden, inner),
    }


def decoder_shapes(c: CodecDecoderConfig) -> Shapes:
    """All of `speech_tokenizer/model.safetensors` that is read: the codec decoder (contract 6.1)."""
    hidden, latent = c.hidden_size, c.latent_dim
    shapes = _quantizer(c)
    shapes |= {
        "decoder.pre_conv.conv.weight": (latent, c.codebook_dim, 3),
        "decoder.pre_conv.conv.bias": (latent,),
        "decoder.pre_transformer.input_proj.weight": (hidden, latent),
        "decoder.pre_transformer.input_proj.bias": (hidden,),
        "decoder.pre_transformer.norm.weight": (hidden,),
        "decoder.pre_transformer.output_proj.weight": (latent, hidden),
        "decoder.pre_transformer.output_proj.bias": (latent,),
    }
    q, kv = c.num_attention_heads * c.head_dim, c.num_key_value_heads * c.head_dim
    for i in range(c.num_hidden_layers):
        at = f"decoder.pre_transformer.layers.{i}."
        shapes |= _attention_and_mlp(at, hidden, c.intermediate_size, q, kv)
        shapes[at + "self_attn_layer_scale.scale"] = (hidden,)
        shapes[at + "mlp_layer_scale.scale"] = (hidden,)
    for i, ratio in enumerate(c.upsampling_ratios):
        shapes |= _upsample(f"decoder.upsample.{i}.", latent, ratio)
    return shapes | _waveform(c)


def _quantizer(c: CodecDecoderConfig) -> Shapes:
    width = c.codebook_dim // 2
    shapes: Shapes = {}
    branches = {"rvq_first": c.num_semantic_quantizers, "rvq_rest": c.num_quantizers - c.num_semantic_quantizers}
    for branch, count in branches.items():
        at = f"decoder.quantizer.{branch}."
        shapes[at + "input_proj.weight"] = (width, c.codebook_dim, 1)  # used when encoding only
        shapes[at + "output_proj.weight"] = (c.codebook_dim, width, 1)
        for i in range(count):
            shapes[f"{at}vq.layers.{i}._codebook.embedding_sum"] = (c.codebook_size, width)
            shapes[f"{at}vq.layers.{i}._codebook.cluster_usage"] = (c.codebook_size,)
    return shapes


def _upsample(at: str, latent: int, ratio: int) -> Shapes:
    return {
        at + "0.conv.weight": (latent, latent, ratio),  # transposed: (in, out, kernel)
        at + "0.conv.bias": (latent,),
        at + "1.dwconv.conv.weight": (latent, 1, 7),
        at + "1.dwconv.conv.bias": (latent,),
        at + "1.norm.weight": (latent,),
        at + "1.norm.bias": (latent,),
        at + "1.pwconv1.weight": (4 * latent, latent),
        at + "1.pwconv1.bias": (4 * latent,),
        at + "1.pwconv2.weight": (latent, 4 * latent),
        at + "1.pwconv2.bias": (latent,),
        at + "1.gamma": (latent,),
    }


def _waveform(c: CodecDecoderConfig) -> Shapes:
    shapes: Shapes = {
        "decoder.decoder.0.conv.weight": (c.decoder_dim, c.latent_dim, 7),
        "decoder.decoder.0.conv.bias": (c.decoder_dim,),
    }
    width = c.decoder_dim
    for i, rate in enumerate(c.upsample_rates, start=1):
        at, out = f"decoder.decoder.{i}.block.", width // 2
        shapes[at + "0.alpha"] = shapes[at + "0.beta"] = (width,)
        shapes[at + "1.conv.weight"] = (width, out, 2 * rate)  # transposed: (in, out, kernel)
        shapes[at + "1.conv.bias"] = (out,)
        for unit in (2, 3, 4):  # residual units with dilation 1, 3, 9
            for act, conv, kernel in (("act1", "conv1", 7), ("act2", "conv2", 1)):
                shapes[f"{at}{unit}.{act}.alpha"] = shapes[f"{at}{unit}.{act}.beta"] = (out,)
                shapes[f"{at}{unit}.{conv}.conv.weight"] = (out, out, kernel)
                shapes[f"{at}{unit}.{conv}.conv.bias"] = (out,)
        width = out
    last = len(c.upsample_rates) + 1
    shapes[f"decoder.decoder.{last}.alpha"] = shapes[f"decoder.decoder.{last}.beta"] = (width,)
    shapes[f"decoder.decoder.{last + 1}.conv.weight"] = (1, width, 7)
    shapes[f"decoder.decoder.{last + 1}.conv.bias"] = (1,)
    return shapes
