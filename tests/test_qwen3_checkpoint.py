"""Checkpoints: complete, of the right shapes, finite, safetensors only; every fault is one sentence that names the tensor."""

import contextlib
import json
import shutil
import struct

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from conftest import cached_checkpoint
from ouzel.errors import CheckpointError
from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.shard import Shard, to_bfloat16
from ouzel.models.qwen3_tts.tensors import decoder_shapes, model_shapes

MODEL = "model.safetensors"
NORM = "talker.model.norm.weight"


@pytest.fixture
def copy(nano_checkpoint, tmp_path):
    """A checkpoint to spoil."""
    shutil.copytree(nano_checkpoint("base"), tmp_path / "copy")
    return tmp_path / "copy"


def edit(folder, change, part=MODEL):
    tensors = load_file(folder / part)
    change(tensors)
    save_file({name: t.contiguous() for name, t in tensors.items()}, folder / part)


def read_all(folder):
    checkpoint = Checkpoint(folder)
    checkpoint.talker()
    checkpoint.predictor()
    checkpoint.decoder()


def refused(folder, *words):
    with pytest.raises(CheckpointError) as caught:
        read_all(folder)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_values_equal_those_of_the_reference_reader(nano_checkpoint):
    folder = nano_checkpoint("custom_voice")
    checkpoint, raw = Checkpoint(folder), load_file(folder / MODEL)
    assert raw[NORM].dtype == torch.bfloat16
    assert torch.equal(checkpoint.talker()["norm.weight"], raw[NORM].float())
    assert np.array_equal(checkpoint.text_rows(3, 7), raw["talker.model.text_embedding.weight"][3:7].float().numpy())
    assert np.array_equal(checkpoint.codec_embedding(), raw["talker.model.codec_embedding.weight"].float().numpy())
    expected = raw["talker.code_predictor.model.codec_embedding.4.weight"].float()
    assert np.array_equal(checkpoint.residual_embedding()[4], expected.numpy())
    assert torch.equal(checkpoint.predictor()["codec_embedding.4.weight"], expected)
    assert [a.shape for a in checkpoint.text_projection()] == [(64, 64), (64,), (64, 64), (64,)]


@pytest.mark.parametrize(("part", "count"), [("talker", 2), ("predictor", 1)])
def test_fused_rows_follow_each_other(nano_checkpoint, part, count):
    folder = nano_checkpoint("custom_voice")
    raw = load_file(folder / MODEL)
    prefix = {"talker": "talker.model.", "predictor": "talker.code_predictor.model."}[part]
    tensors = getattr(Checkpoint(folder), part)()
    for i in range(count):
        for fused, parts in (("self_attn.qkv_proj", "qkv"), ("mlp.gate_up_proj", ("gate", "up"))):
            group = fused.split(".")[0]
            rows = [raw[f"{prefix}layers.{i}.{group}.{p}_proj.weight"] for p in parts]
            assert torch.equal(tensors[f"layers.{i}.{fused}.weight"], torch.cat(rows).float())
    assert not [name for name in tensors if "q_proj" in name or "up_proj" in name.replace("gate_up_proj", "")]


def test_both_parts_together_use_every_tensor(nano_checkpoint):
    """Nothing is read twice or forgotten: values counted against the shape tables."""
    checkpoint = Checkpoint(nano_checkpoint("custom_voice"))
    total = sum(int(np.prod(s)) for s in model_shapes(checkpoint.config.talker).values())
    parts = sum(t.numel() for part in (checkpoint.talker(), checkpoint.predictor()) for t in part.values())
    tables = checkpoint.text_rows(0, checkpoint.config.talker.text_vocab_size).size + checkpoint.codec_embedding().size
    assert parts + tables + sum(a.size for a in checkpoint.text_projection()) == total
    total = sum(int(np.prod(s)) for s in decoder_shapes(checkpoint.codec.decoder).values())
    assert sum(t.numel() for t in checkpoint.decoder().values()) == total


def test_the_projection_exists_only_between_different_widths(nano_checkpoint):
    talker = Checkpoint(nano_checkpoint("base")).config.talker
    assert not [n for n in model_shapes(talker) if "small_to_mtp" in n]
    object.__setattr__(talker, "hidden_size", 96)
    assert model_shapes(talker)["talker.code_predictor.small_to_mtp_projection.weight"] == (64, 96)


def test_shards_are_found_through_the_index(copy):
    tensors = load_file(copy / MODEL)
    names = sorted(tensors)
    save_file({n: tensors[n] for n in names[::2]}, copy / "model-1.safetensors")
    save_file({n: tensors[n] for n in names[1::2]}, copy / "model-2.safetensors")
    (copy / MODEL).unlink()
    index = {"weight_map": {n: f"model-{1 + i % 2}.safetensors" for i, n in enumerate(names)}}
    (copy / "model.safetensors.index.json").write_text(json.dumps(index))
    assert torch.equal(Checkpoint(copy).talker()["norm.weight"], tensors[NORM].float())
    save_file({names[0]: tensors[names[0]]}, copy / "model-2.safetensors")
    refused(copy, names[0], "both model-1.safetensors and model-2.safetensors")


@pytest.mark.parametrize(
    ("index", "word"),
    [({}, "weight_map"), ({"weight_map": {"a": "../x.safetensors"}}, "outside"), ({"weight_map": 3}, "weight_map")],
)
def test_a_bad_index_is_refused(copy, index, word):
    (copy / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(copy, word)


def test_missing_extra_and_misshapen_tensors_are_named(copy):
    edit(copy, lambda t: t.pop(NORM))
    refused(copy, "lacks 1 tensor", NORM)
    edit(copy, lambda t: t.update({NORM: torch.ones(64), "talker.model.layers.9.mlp.up_proj.weight": torch.ones(2)}))
    refused(copy, "layers.9.mlp.up_proj.weight", "does not call for")
    edit(copy, lambda t: (t.pop("talker.model.layers.9.mlp.up_proj.weight"), t.update({NORM: torch.ones(63)})))
    refused(copy, NORM, "(63,)", "(64,)")


def test_long_lists_are_cut(copy):
    edit(copy, lambda t: [t.pop(n) for n in list(t) if "layers" in n])
    refused(copy, "lacks 33 tensors", "and 27 more")


def test_parts_for_recordings_are_let_through_and_listed_where_none_is_taken(copy):
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "tts_model_type": "voice_design"}))
    edit(copy, lambda t: t.update({"speaker_encoder.fc.weight": torch.ones(2, dtype=torch.int64)}))
    edit(copy, lambda t: t.update({"encoder.x": torch.tensor(float("nan"))}), "speech_tokenizer/model.safetensors")
    checkpoint = Checkpoint(copy)
    assert checkpoint.model_file.unread == ["speaker_encoder.fc.weight"]
    assert checkpoint.codec_file.unread == ["encoder.x"]
    assert checkpoint.decoder()
    assert checkpoint.speaker is None
    assert checkpoint.encoder is None


def test_a_base_model_has_all_of_an_encoder_or_none(copy, tmp_path):
    assert Checkpoint(copy).speaker is None
    whole = cached_checkpoint("nano", "base", encoders=True)
    found = Checkpoint(whole)
    assert found.model_file.unread == []
    assert all(name.endswith((".initialized", ".output_proj.weight")) for name in found.codec_file.unread)
    for part, name in ((MODEL, "speaker_encoder.fc.bias"), ("speech_tokenizer/" + MODEL, "encoder.downsample.conv.weight")):
        folder = tmp_path / part.replace("/", "-")
        shutil.copytree(whole, folder)
        edit(folder, lambda t, name=name: t.pop(name), part)
        refused(folder, "lacks 1 tensor", name)
        edit(folder, lambda t, name=name: t.update({name: torch.ones(3)}), part)
        refused(folder, name, "(3,)")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_a_value_that_is_not_finite_is_refused(copy, value, dtype):
    def spoil(tensors):
        tensors[NORM] = tensors[NORM].to(dtype)
        tensors[NORM][17] = value

    edit(copy, spoil)
    refused(copy, NORM, "NaN or infinite")


def test_half_precision_is_read_exactly(copy):
    edit(copy, lambda t: t.update({NORM: torch.linspace(-2, 2, 64).half()}))
    assert torch.equal(Checkpoint(copy).talker()["norm.weight"], torch.linspace(-2, 2, 64).half().float())


def test_other_types_are_refused(copy):
    edit(copy, lambda t: t.update({NORM: torch.ones(64, dtype=torch.int32)}))
    refused(copy, NORM, "I32", "F32, F16, BF16")


def test_pickles_are_refused(copy):
    (copy / MODEL).rename(copy / "pytorch_model.bin")
    refused(copy, "pytorch_model.bin", "only safetensors")
    (copy / "pytorch_model.bin").unlink()
    refused(copy, "neither")


def test_folders_that_are_no_checkpoint(tmp_path):
    refused(tmp_path / "nothing", "not a folder")
    refused(tmp_path, "config.json", "cannot be read")


# ---- damaged files

SETTINGS = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@SETTINGS
@given(st.floats(0, 1, exclude_max=True))
def test_a_file_cut_anywhere_is_refused(nano_checkpoint, copy, at):
    whole = (nano_checkpoint("base") / MODEL).read_bytes()
    (copy / MODEL).write_bytes(whole[: int(len(whole) * at)])
    refused(copy, "model.safetensors")


@SETTINGS
@given(st.binary(max_size=200), st.integers(0, 2**64 - 1))
def test_rubbish_is_refused(tmp_path, rubbish, length):
    for content in (rubbish, struct.pack("<Q", length) + rubbish, struct.pack("<Q", len(rubbish)) + rubbish):
        (tmp_path / "x").write_bytes(content)
        with contextlib.suppress(CheckpointError):
            assert Shard(tmp_path / "x").tensors == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@SETTINGS
@given(JSON | st.fixed_dictionaries({"t": st.fixed_dictionaries({"dtype": JSON, "shape": JSON, "data_offsets": JSON})}))
def test_a_damaged_header_is_refused(tmp_path, header):
    text = json.dumps(header).encode()
    (tmp_path / "x").write_bytes(struct.pack("<Q", len(text)) + text + bytes(64))
    try:
        shard = Shard(tmp_path / "x")
    except CheckpointError:
        return
    assert isinstance(header, dict)
    assert set(shard.tensors) <= set(header)


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=50))
def test_rounding_to_bfloat16_is_that_of_torch(bits):
    values = np.array(bits, dtype=np.uint32).view(np.float32)
    values = values[np.isfinite(values)]
    expected = torch.from_numpy(values).bfloat16().view(torch.int16).numpy().view(np.uint16)
    assert np.array_equal(to_bfloat16(values), expected)
