"""What a Qwen3-TTS checkpoint says about itself (contract 4.1, 5.2, 5.3, 6.1), read from its config files only.

`config.json` gives ModelConfig (with the talker and its code predictor), `speech_tokenizer/config.json` gives
CodecConfig. Ids and sizes are never taken from defaults: the classes of other programs carry different ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from ...errors import CheckpointError, choose
from .strict import load_json, read

MODEL_TYPE = "qwen3_tts"
CODEC_TYPE = "qwen3_tts_tokenizer_12hz"
# config.json's tts_model_type -> the task names of the server's API (contract 8.2)
TASKS = {"custom_voice": "CustomVoice", "voice_design": "VoiceDesign", "base": "Base"}


@dataclass(frozen=True, slots=True)
class PredictorConfig:
    """The code predictor: a small transformer over at most `num_code_groups + 1` positions (contract 5.3)."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float
    rope_theta: float
    num_code_groups: int
    attention_bias: bool
    hidden_act: str

    def __post_init__(self) -> None:
        _check_transformer(self, "code_predictor_config")


@dataclass(frozen=True, slots=True)
class TalkerConfig:
    """The talker. `text_hidden_size` is the width of the text table before the projection MLP to `hidden_size`."""

    code_predictor_config: PredictorConfig
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float
    rope_theta: float
    max_position_embeddings: int
    num_code_groups: int
    attention_bias: bool
    hidden_act: str
    text_hidden_size: int
    text_vocab_size: int
    codec_bos_id: int
    codec_eos_token_id: int
    codec_pad_id: int
    codec_think_id: int
    codec_nothink_id: int
    codec_think_bos_id: int
    codec_think_eos_id: int
    codec_language_id: dict[str, int]
    spk_id: dict[str, int]
    spk_is_dialect: dict[str, bool | str]

    def __post_init__(self) -> None:
        _check_transformer(self, "talker_config")
        if self.code_predictor_config.num_code_groups != self.num_code_groups:
            raise CheckpointError(
                f"talker_config says {self.num_code_groups} code groups, its code_predictor_config says "
                f"{self.code_predictor_config.num_code_groups}; they must be equal."
            )
        ids = {n: getattr(self, n) for n in ("codec_bos_id", "codec_eos_token_id", "codec_pad_id", "codec_think_id")}
        ids |= {n: getattr(self, n) for n in ("codec_nothink_id", "codec_think_bos_id", "codec_think_eos_id")}
        ids |= {f"codec_language_id.{k}": v for k, v in self.codec_language_id.items()}
        ids |= {f"spk_id.{k}": v for k, v in self.spk_id.items()}
        _check_ids(ids, self.vocab_size, "talker_config", "codec")
        for voice, dialect in self.spk_is_dialect.items():
            if dialect and dialect not in self.codec_language_id:
                raise choose(f"dialect of voice {voice!r}", dialect, self.codec_language_id, error=CheckpointError)

    @property
    def predictor(self) -> PredictorConfig:
        return self.code_predictor_config

    @property
    def projects_to_predictor(self) -> bool:
        """Whether the checkpoint has `small_to_mtp_projection`: only when the two widths differ (contract 5.3)."""
        return self.hidden_size != self.predictor.hidden_size


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """`config.json`. `tts_model_type` is custom_voice, voice_design or base; `tts_model_size` is 0b6 or 1b7."""

    talker_config: TalkerConfig
    tts_model_type: str
    tts_model_size: str
    tokenizer_type: str
    im_start_token_id: int
    im_end_token_id: int
    assistant_token_id: int
    tts_pad_token_id: int
    tts_bos_token_id: int
    tts_eos_token_id: int

    def __post_init__(self) -> None:
        if self.tokenizer_type != CODEC_TYPE:
            raise choose("tokenizer_type in config.json", self.tokenizer_type, [CODEC_TYPE], error=CheckpointError)
        if self.tts_model_type not in TASKS:
            raise choose("tts_model_type in config.json", self.tts_model_type, TASKS, error=CheckpointError)
        names = ["im_start_token_id", "im_end_token_id", "assistant_token_id"]
        names += ["tts_pad_token_id", "tts_bos_token_id", "tts_eos_token_id"]
        _check_ids({n: getattr(self, n) for n in names}, self.talker_config.text_vocab_size, "config.json", "text")

    @property
    def talker(self) -> TalkerConfig:
        return self.talker_config

    @property
    def task(self) -> str:
        """CustomVoice, VoiceDesign or Base."""
        return TASKS[self.tts_model_type]

    @classmethod
    def parse(cls, value: Mapping[str, Any], where: str = "config.json") -> ModelConfig:
        """From a parsed config.json; CheckpointError names what is missing or wrong."""
        kind = value.get("model_type")
        if kind != MODEL_TYPE:
            raise choose(f"model_type in {where}", kind, [MODEL_TYPE], error=CheckpointError)
        config = read(cls, value, where)
        _check_rope(value["talker_config"].get("rope_scaling"), config.talker.head_dim, where)
        return config


@dataclass(frozen=True, slots=True)
class CodecDecoderConfig:
    """`decoder_config` of `speech_tokenizer/config.json` (contract 6.1)."""

    codebook_dim: int
    codebook_size: int
    decoder_dim: int
    head_dim: int
    hidden_size: int
    intermediate_size: int
    latent_dim: int
    num_attention_heads: int
    num_hidden_layers: int
    num_key_value_heads: int
    num_quantizers: int
    num_semantic_quantizers: int
    rms_norm_eps: float
    rope_theta: float
    sliding_window: int
    upsample_rates: tuple[int, ...]
    upsampling_ratios: tuple[int, ...]
    attention_bias: bool
    hidden_act: str

    def __post_init__(self) -> None:
        _check_transformer(self, "decoder_config")
        if not 0 < self.num_semantic_quantizers < self.num_quantizers:
            raise CheckpointError(
                f"decoder_config: num_semantic_quantizers {self.num_semantic_quantizers} must be between 1 and "
                f"num_quantizers {self.num_quantizers} - 1."
            )
        if self.decoder_dim % 2 ** len(self.upsample_rates):
            raise CheckpointError(f"decoder_config: decoder_dim {self.decoder_dim} cannot be halved once per upsample rate.")

    @property
    def samples_per_frame(self) -> int:
        return prod(self.upsample_rates) * prod(self.upsampling_ratios)


@dataclass(frozen=True, slots=True)
class CodecConfig:
    """`speech_tokenizer/config.json`: the decoder and its output rate in Hz."""

    decoder_config: CodecDecoderConfig
    output_sample_rate: int
    decode_upsample_rate: int

    def __post_init__(self) -> None:
        if self.decode_upsample_rate != self.decoder.samples_per_frame:
            raise CheckpointError(
                f"speech_tokenizer/config.json: decode_upsample_rate is {self.decode_upsample_rate}, but the upsampling "
                f"factors multiply to {self.decoder.samples_per_frame}."
            )

    @property
    def decoder(self) -> CodecDecoderConfig:
        return self.decoder_config

    @classmethod
    def parse(cls, value: Mapping[str, Any], where: str = "speech_tokenizer/config.json") -> CodecConfig:
        """From a parsed speech_tokenizer/config.json; CheckpointError names what is missing or wrong."""
        kind = value.get("model_type")
        if kind != CODEC_TYPE:
            raise choose(f"model_type in {where}", kind, [CODEC_TYPE], error=CheckpointError)
        return read(cls, value, where)


def load_configs(folder: Path) -> tuple[ModelConfig, CodecConfig]:
    """Both configs of a checkpoint folder; also checks that talker and codec agree on groups and code range."""
    model = ModelConfig.parse(load_json(folder / "config.json"))
    codec = CodecConfig.parse(load_json(folder / "speech_tokenizer" / "config.json"))
    if model.talker.num_code_groups != codec.decoder.num_quantizers:
        raise CheckpointError(
            f"The talker makes {model.talker.num_code_groups} codes a frame, but the codec decoder takes "
            f"{codec.decoder.num_quantizers}; the two parts are from different models."
        )
    if model.talker.predictor.vocab_size > codec.decoder.codebook_size:
        raise CheckpointError(
            f"The code predictor has {model.talker.predictor.vocab_size} codes, but the codec decoder's codebooks hold "
            f"{codec.decoder.codebook_size}; the two parts are from different models."
        )
    return model, codec


def _check_transformer(config: PredictorConfig | TalkerConfig | CodecDecoderConfig, where: str) -> None:
    if config.hidden_act != "silu":
        raise choose(f"hidden_act in {where}", config.hidden_act, ["silu"], error=CheckpointError)
    if config.attention_bias:
        raise CheckpointError(f"{where}: attention_bias true is not supported; no published Qwen3-TTS model has it.")
    if config.num_key_value_heads < 1 or config.num_attention_heads % config.num_key_value_heads:
        raise CheckpointError(
            f"{where}: {config.num_attention_heads} attention heads cannot share {config.num_key_value_heads} key/value heads."
        )


def _check_ids(ids: Mapping[str, int], size: int, where: str, table: str) -> None:
    wrong = [f"{name} = {value}" for name, value in ids.items() if not 0 <= value < size]
    if wrong:
        raise CheckpointError(f"{where}: outside the {table} vocabulary of {size}: {', '.join(wrong)}.")


def _check_rope(scaling: Any, head_dim: int, where: str) -> None:
    # The three multimodal position streams are equal in speech, so mrope is plain RoPE (contract 5.2); nothing else is.
    if scaling is None:
        return
    kind = scaling.get("rope_type", scaling.get("type", "default")) if isinstance(scaling, Mapping) else scaling
    if kind not in ("default", "mrope"):
        raise choose(f"talker_config.rope_scaling type in {where}", kind, ["default", "mrope"], error=CheckpointError)
    sections = scaling.get("mrope_section")
    if sections is not None and sum(sections) * 2 != head_dim:
        raise CheckpointError(f"{where}: talker_config.rope_scaling.mrope_section {sections} does not cover head_dim {head_dim}.")
