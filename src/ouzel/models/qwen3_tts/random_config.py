"""Configs of random checkpoints: the published sizes, and two small ones with the same structure.

tiny keeps every id of the published models (and so their 151936 text rows); nano has its own small text ids and small
codebooks, which the config files allow, and makes a bundle of a few MB. Frame rate, upsampling and groups never change.
"""

from __future__ import annotations

from typing import Any

from .config import CODEC_TYPE, MODEL_TYPE, TASKS

Json = dict[str, Any]
SIZES = ("nano", "tiny", "0.6b", "1.7b")
TYPES = tuple(TASKS)
SAMPLE_RATE = 24_000

# contract 4.1
LANGUAGES = {"chinese": 2055, "english": 2050, "german": 2053, "italian": 2070, "portuguese": 2071, "spanish": 2054}
LANGUAGES |= {"japanese": 2058, "korean": 2064, "french": 2061, "russian": 2069}
DIALECTS = {"beijing_dialect": 2074, "sichuan_dialect": 2062}
VOICES = {"serena": 3066, "vivian": 3065, "uncle_fu": 3010, "ryan": 3061, "aiden": 2861}
VOICES |= {"ono_anna": 2873, "sohee": 2864, "eric": 2875, "dylan": 2878}
VOICE_DIALECTS = {"eric": "sichuan_dialect", "dylan": "beijing_dialect"}
CODEC_IDS = {"codec_pad_id": 2148, "codec_bos_id": 2149, "codec_eos_token_id": 2150, "codec_think_id": 2154}
CODEC_IDS |= {"codec_nothink_id": 2155, "codec_think_bos_id": 2156, "codec_think_eos_id": 2157}


def _transformer(hidden: int, inner: int, layers: int, heads: int, kv: int, head_dim: int) -> Json:
    return {
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "head_dim": head_dim,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "hidden_act": "silu",
    }


TALKERS = {
    "nano": _transformer(64, 128, 2, 4, 2, 16),
    "tiny": _transformer(128, 256, 3, 4, 2, 128),
    "0.6b": _transformer(1024, 3072, 28, 16, 8, 128),
    "1.7b": _transformer(2048, 6144, 28, 16, 8, 128),
}
PREDICTORS = {
    "nano": _transformer(64, 128, 1, 4, 2, 16),
    "tiny": _transformer(128, 256, 2, 4, 2, 128),
    "0.6b": _transformer(1024, 3072, 5, 16, 8, 128),
    "1.7b": _transformer(1024, 3072, 5, 16, 8, 128),
}
TEXT_HIDDEN = {"nano": 64, "tiny": 128, "0.6b": 2048, "1.7b": 2048}
CODES = {"nano": 256, "tiny": 2048, "0.6b": 2048, "1.7b": 2048}
# (codebook_dim, latent_dim, decoder_dim) and the transformer of the codec decoder
CODECS = {
    "nano": ((32, 32, 32), _transformer(32, 64, 2, 2, 2, 16)),
    "tiny": ((64, 64, 64), _transformer(64, 128, 8, 16, 16, 16)),
}
PUBLISHED_CODEC = ((512, 1024, 1536), _transformer(512, 1024, 8, 16, 16, 64))
# split of the rotary half dimensions over time, height and width; equal positions make it plain RoPE (contract 5.2)
ROPE_SECTIONS = {16: [4, 2, 2], 128: [24, 20, 20]}


def model_config(size: str, kind: str, text_ids: dict[str, int], text_vocab: int) -> Json:
    """`config.json`; `text_ids` holds im_start_token_id and its fellows, `text_vocab` the rows of the text table."""
    return {
        "architectures": ["Qwen3TTSForConditionalGeneration"],
        "model_type": MODEL_TYPE,
        "tokenizer_type": CODEC_TYPE,
        "tts_model_size": "0b6" if size == "0.6b" else "1b7",  # 0b6 means: takes no instructions
        "tts_model_type": kind,
        **text_ids,
        "speaker_encoder_config": {"enc_dim": TALKERS[size]["hidden_size"], "sample_rate": SAMPLE_RATE},
        "talker_config": _talker(size, kind, text_vocab),
    }


def _talker(size: str, kind: str, text_vocab: int) -> Json:
    named = kind == "custom_voice"
    shared = {
        "num_code_groups": 16,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1_000_000,
        "initializer_range": 0.02,
        "tie_word_embeddings": False,
        "use_cache": True,
    }
    sections = ROPE_SECTIONS[TALKERS[size]["head_dim"]]
    return {
        "model_type": "qwen3_tts_talker",
        **TALKERS[size],
        **shared,
        "vocab_size": 3072,
        "max_position_embeddings": 32768,
        "text_hidden_size": TEXT_HIDDEN[size],
        "text_vocab_size": text_vocab,
        "position_id_per_seconds": 13,
        "rope_scaling": {"interleaved": True, "mrope_section": sections, "rope_type": "default", "type": "default"},
        **CODEC_IDS,
        "codec_language_id": LANGUAGES | DIALECTS if named else LANGUAGES,
        "spk_id": VOICES if named else {},
        "spk_is_dialect": {voice: VOICE_DIALECTS.get(voice, False) for voice in VOICES} if named else {},
        "code_predictor_config": {
            "model_type": "qwen3_tts_talker_code_predictor",
            **PREDICTORS[size],
            **shared,
            "vocab_size": CODES[size],
            "max_position_embeddings": 65536,
            "rope_scaling": None,
        },
    }


def codec_config(size: str) -> Json:
    """`speech_tokenizer/config.json`, decoder part; readers that want an encoder fall back to their own sizes."""
    (codebook, latent, width), transformer = CODECS.get(size, PUBLISHED_CODEC)
    decoder = {
        **transformer,
        "codebook_dim": codebook,
        "codebook_size": CODES[size],
        "decoder_dim": width,
        "latent_dim": latent,
        "layer_scale_initial_scale": 0.01,
        "max_position_embeddings": 8000,
        "num_quantizers": 16,
        "num_semantic_quantizers": 1,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10_000,
        "semantic_codebook_size": 4096,
        "sliding_window": 72,
        "upsample_rates": [8, 5, 4, 3],
        "upsampling_ratios": [2, 2],
        "vector_quantization_hidden_dimension": codebook,
    }
    return {
        "architectures": ["Qwen3TTSTokenizerV2Model"],
        "model_type": CODEC_TYPE,
        "decoder_config": decoder,
        "encoder_valid_num_quantizers": 16,
        "input_sample_rate": SAMPLE_RATE,
        "output_sample_rate": SAMPLE_RATE,
        "decode_upsample_rate": 1920,
        "encode_downsample_rate": 1920,
    }
