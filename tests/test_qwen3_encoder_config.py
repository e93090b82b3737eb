"""What configs say about the networks that read recordings: the published forms, and each fault as one sentence."""

from __future__ import annotations

import re

import pytest

from ouzel.errors import CheckpointError
from ouzel.models.qwen3_tts.encoder_config import CodecEncoderConfig, SpeakerConfig
from ouzel.models.qwen3_tts.encoder_tensors import codec_encoder_shapes, speaker_shapes
from ouzel.models.qwen3_tts.random_config import codec_config
from ouzel.models.qwen3_tts.random_encoders import encoder_config

PUBLISHED = {"enc_dim": 1024, "sample_rate": 24_000}
CODEC = {**codec_config("0.6b"), "encoder_config": encoder_config("0.6b", 2048, 24_000)}


def test_the_published_speaker_encoder():
    shapes = speaker_shapes(SpeakerConfig.parse(PUBLISHED, 1024))
    assert len(shapes) == 2 * (1 + 3 * 11 + 4)
    assert shapes["speaker_encoder.blocks.2.res2net_block.blocks.6.conv.weight"] == (64, 64, 3)
    assert shapes["speaker_encoder.asp.tdnn.conv.weight"] == (128, 4608, 1)
    assert shapes["speaker_encoder.fc.weight"] == (1024, 3072, 1)


def test_the_published_codec_encoder():
    config = CodecEncoderConfig.parse(CODEC, 16)
    assert (config.hop, config.strides) == (960, (4, 5, 6, 8))
    read, whole = codec_encoder_shapes(config, 16), codec_encoder_shapes(config)
    assert read["encoder.encoder.layers.12.conv.weight"] == (1024, 512, 16)
    assert read["encoder.encoder.layers.14.conv.weight"] == (512, 1024, 3)
    assert read.items() <= whole.items()
    assert sum(name.endswith("embed_sum") for name in read) == 16
    assert sum(name.endswith("embed_sum") for name in whole) == 32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"enc_dim": 2048}, "enc_dim is 2048, but the talker's rows have 1024 values"),
        ({"enc_dim": "wide"}, "enc_dim must be int"),
        ({"mel_dim": 0}, "every size must be 1 or more"),
        ({"enc_dilations": [1, 2]}, "equally many"),
        ({"enc_kernel_sizes": [4, 3, 3, 3, 1]}, "kernel sizes must be odd"),
        ({"enc_res2net_scale": 7}, "multiples of enc_res2net_scale"),
        ({"enc_channels": [512, 512, 512, 512, 512]}, "add up, but for the first, to the last"),
    ],
)
def test_a_speaker_encoder_of_another_build(change, message):
    with pytest.raises(CheckpointError, match=re.escape(message)) as caught:
        SpeakerConfig.parse({**PUBLISHED, **change}, 1024)
    assert "speaker_encoder_config" in str(caught.value)


def test_a_config_without_the_blocks():
    with pytest.raises(CheckpointError, match="speaker_encoder_config must be a JSON object"):
        SpeakerConfig.parse(None, 1024)
    with pytest.raises(CheckpointError, match="encoder_config must be a JSON object"):
        CodecEncoderConfig.parse(codec_config("0.6b"), 16)
    with pytest.raises(CheckpointError, match="lacks sample_rate"):
        SpeakerConfig.parse({"enc_dim": 1024}, 1024)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_act": "relu"}, "Valid choices: gelu"),
        ({"use_causal_conv": False}, "only a causal encoder of one channel"),
        ({"audio_channels": 2}, "only a causal encoder of one channel"),
        ({"use_conv_shortcut": True}, "use_conv_shortcut True is not supported"),
        ({"pad_mode": "reflect"}, "pad_mode 'reflect' is not supported"),
        ({"upsampling_ratios": [8, 6, 5, 2]}, "encode_downsample_rate is 1920, but the strides make 960"),
        ({"num_key_value_heads": 0}, "every size must be 1 or more"),
        ({"num_key_value_heads": 3}, "8 heads must share 3 evenly"),
        ({"num_quantizers": 8}, "16 of 8 codebooks do not fit frames of 16 codes"),
    ],
)
def test_a_codec_encoder_of_another_build(change, message):
    with pytest.raises(CheckpointError, match=re.escape(message)):
        CodecEncoderConfig.parse({**CODEC, "encoder_config": {**CODEC["encoder_config"], **change}}, 16)
