"""config.json and speech_tokenizer/config.json: everything is read, nothing is guessed."""

import copy
import json

import pytest

from ouzel.errors import CheckpointError
from ouzel.models.qwen3_tts.config import CodecConfig, ModelConfig, load_configs
from ouzel.models.qwen3_tts.random_config import codec_config, model_config
from ouzel.models.qwen3_tts.strict import load_json

IDS = {
    "im_start_token_id": 151644,
    "im_end_token_id": 151645,
    "assistant_token_id": 77091,
    "tts_pad_token_id": 151671,
    "tts_bos_token_id": 151672,
    "tts_eos_token_id": 151673,
}
MODEL = model_config("tiny", "custom_voice", IDS, 151936)
CODEC = codec_config("tiny")
READ_ELSEWHERE = {  # written for the official package, not read by Ouzel
    (): {"architectures", "speaker_encoder_config"},
    ("talker_config",): {"attention_dropout", "initializer_range", "tie_word_embeddings", "use_cache", "model_type"},
}
READ_ELSEWHERE[("talker_config",)] |= {"position_id_per_seconds", "rope_scaling"}
READ_ELSEWHERE[("talker_config", "code_predictor_config")] = READ_ELSEWHERE[("talker_config",)] | {"max_position_embeddings"}


def keys(value, path=()):
    """Paths of all keys that Ouzel must find."""
    for key, inner in value.items():
        if key not in READ_ELSEWHERE.get(path, set()):
            yield (*path, key)
            if isinstance(inner, dict) and key.endswith("_config"):
                yield from keys(inner, (*path, key))


def changed(value, path, new):
    """A deep copy with one key replaced, or removed if `new` is None."""
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    if new is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return value


def test_published_values():
    config = ModelConfig.parse(MODEL)
    assert (config.task, config.talker.num_code_groups, config.talker.vocab_size) == ("CustomVoice", 16, 3072)
    assert config.talker.codec_language_id["sichuan_dialect"] == 2062
    assert config.talker.spk_is_dialect["eric"] == "sichuan_dialect"
    assert config.talker.rope_theta == 1e6
    assert config.im_start_token_id == 151644
    codec = CodecConfig.parse(CODEC)
    assert (codec.decoder.samples_per_frame, codec.output_sample_rate, codec.decoder.sliding_window) == (1920, 24000, 72)


@pytest.mark.parametrize("path", list(keys(MODEL)), ids="/".join)
def test_a_missing_key_is_named(path):
    with pytest.raises(CheckpointError, match=path[-1]):
        ModelConfig.parse(changed(MODEL, path, None))


@pytest.mark.parametrize("path", [("decoder_config", k) for k in ("hidden_size", "upsample_rates")] + [("output_sample_rate",)])
def test_a_missing_codec_key_is_named(path):
    with pytest.raises(CheckpointError, match=path[-1]):
        CodecConfig.parse(changed(CODEC, path, None))


def test_all_missing_keys_are_named_at_once():
    broken = changed(changed(MODEL, ("talker_config", "head_dim"), None), ("talker_config", "spk_id"), None)
    with pytest.raises(CheckpointError, match=r"head_dim, spk_id"):
        ModelConfig.parse(broken)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("model_type",), "qwen2", "qwen3_tts"),
        (("tokenizer_type",), "qwen3_tts_tokenizer_25hz", "qwen3_tts_tokenizer_12hz"),
        (("tts_model_type",), "singing", "custom_voice, voice_design, base"),
        (("tts_pad_token_id",), 151936, "tts_pad_token_id = 151936"),
        (("tts_pad_token_id",), "151671", "must be int"),
        (("tts_pad_token_id",), True, "must be int"),
        (("talker_config",), 3, "must be a JSON object"),
        (("talker_config", "hidden_act"), "gelu", "silu"),
        (("talker_config", "attention_bias"), True, "attention_bias"),
        (("talker_config", "num_key_value_heads"), 3, "cannot share 3"),
        (("talker_config", "num_key_value_heads"), 0, "cannot share 0"),
        (("talker_config", "codec_eos_token_id"), 3072, "codec_eos_token_id = 3072"),
        (("talker_config", "spk_id"), {"ryan": -1}, "spk_id.ryan = -1"),
        (("talker_config", "spk_is_dialect"), {"eric": "mars_dialect"}, "mars_dialect"),
        (("talker_config", "num_code_groups"), 8, "code groups"),
        (("talker_config", "rope_scaling"), {"rope_type": "yarn"}, "yarn"),
        (("talker_config", "rope_scaling"), {"rope_type": "default", "mrope_section": [1, 1, 1]}, "head_dim 128"),
        (("talker_config", "code_predictor_config", "vocab_size"), 2048.5, "must be int"),
    ],
)
def test_wrong_values_are_refused(path, value, message):
    with pytest.raises(CheckpointError, match=message):
        ModelConfig.parse(changed(MODEL, path, value))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("model_type",), "mimi", "qwen3_tts_tokenizer_12hz"),
        (("decode_upsample_rate",), 2000, "multiply to 1920"),
        (("decoder_config", "upsample_rates"), [8, 5, 4], "multiply to 640"),
        (("decoder_config", "num_semantic_quantizers"), 16, "num_semantic_quantizers"),
        (("decoder_config", "decoder_dim"), 24, "halved"),
    ],
)
def test_wrong_codec_values_are_refused(path, value, message):
    with pytest.raises(CheckpointError, match=message):
        CodecConfig.parse(changed(CODEC, path, value))


def test_keys_of_other_programs_are_let_through():
    assert ModelConfig.parse(changed(MODEL, ("torch_dtype",), "bfloat16")).task == "CustomVoice"


def test_plain_rope_is_accepted():
    assert ModelConfig.parse({**MODEL, "talker_config": {**MODEL["talker_config"], "rope_scaling": None}}).talker.head_dim == 128


def test_talker_and_codec_must_belong_together(tmp_path):
    (tmp_path / "speech_tokenizer").mkdir()
    (tmp_path / "config.json").write_text(json.dumps(MODEL))
    other = changed(CODEC, ("decoder_config", "num_quantizers"), 8)
    (tmp_path / "speech_tokenizer" / "config.json").write_text(json.dumps(other))
    with pytest.raises(CheckpointError, match="16 codes a frame"):
        load_configs(tmp_path)
    other = changed(CODEC, ("decoder_config", "codebook_size"), 1024)
    (tmp_path / "speech_tokenizer" / "config.json").write_text(json.dumps(other))
    with pytest.raises(CheckpointError, match="2048 codes"):
        load_configs(tmp_path)


@pytest.mark.parametrize(("text", "message"), [(None, "cannot be read"), ("{", "not valid JSON"), ("[]", "holds a list")])
def test_unreadable_files_are_one_sentence(tmp_path, text, message):
    path = tmp_path / "config.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(CheckpointError, match=message):
        load_json(path)
