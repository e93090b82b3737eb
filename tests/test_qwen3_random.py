"""Random checkpoints: the same bytes everywhere, well-behaved values, readable by everything that reads the layout."""

import hashlib
import json

import numpy as np
import pytest
import torch

from ouzel.errors import UsageError
from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.network.decoder import build_decoder
from ouzel.models.qwen3_tts.random_checkpoint import main, write_random_checkpoint
from ouzel.models.qwen3_tts.random_config import SIZES, TYPES
from ouzel.models.qwen3_tts.tokenizer import read_tokenizer

NANO = {  # sha256 of what seed 0 gives on any machine
    "model.safetensors": "25ef47ba6e69c95f78f3e7c0ed3d55203d328458cb65d2596c82c6d703ac8d5a",
    "speech_tokenizer/model.safetensors": "d12c6da9bb23eb2be8ccfa54fc5a5ed52abaf6b02d543158c47a5757d8db2658",
}


def sums(folder):
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in NANO}


def test_bytes_are_the_same_on_every_machine(tmp_path):
    write_random_checkpoint(tmp_path / "a", size="nano")
    assert sums(tmp_path / "a") == NANO
    write_random_checkpoint(tmp_path / "b", size="nano", seed=1)
    assert all(value != NANO[name] for name, value in sums(tmp_path / "b").items())


def test_values_do_not_depend_on_precision_or_block_size(tmp_path, monkeypatch):
    write_random_checkpoint(tmp_path / "bf16", size="nano", dtype="bf16")
    monkeypatch.setattr("ouzel.models.qwen3_tts.random_values.BLOCK", 1000)
    write_random_checkpoint(tmp_path / "f32", size="nano", dtype="f32")
    short, long = Checkpoint(tmp_path / "bf16").talker(), Checkpoint(tmp_path / "f32").talker()
    assert all(torch.equal(short[name], long[name].bfloat16().float()) for name in long)


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_reads_back(nano_checkpoint, kind):
    checkpoint = Checkpoint(nano_checkpoint(kind))
    assert checkpoint.config.tts_model_type == kind
    assert bool(checkpoint.config.talker.spk_id) == (kind == "custom_voice")


def test_tiny_has_the_published_ids(tiny_checkpoint):
    checkpoint = Checkpoint(tiny_checkpoint("custom_voice"))
    config, tokenizer = checkpoint.config, read_tokenizer(tiny_checkpoint("custom_voice"))
    assert (config.im_start_token_id, config.assistant_token_id, config.tts_eos_token_id) == (151644, 77091, 151673)
    assert config.talker.text_vocab_size == 151936
    assert tokenizer.encode("assistant\n") == [77091, 198]
    assert tokenizer.encode("user\n") == [872, 198]
    assert tokenizer.token_id("<tts_pad>") == config.tts_pad_token_id
    assert checkpoint.text_rows(151935, 151936).shape == (1, 128)


def test_nano_is_small_and_consistent(nano_checkpoint):
    folder = nano_checkpoint("custom_voice")
    config, tokenizer = Checkpoint(folder).config, read_tokenizer(folder)
    assert sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) < 3.5e6
    assert tokenizer.encode("assistant\n")[0] == config.assistant_token_id
    for token, number in (("<|im_start|>", config.im_start_token_id), ("<tts_text_eod>", config.tts_eos_token_id)):
        assert tokenizer.token_id(token) == number


def test_the_waveform_is_loud_enough_and_not_clipped(nano_checkpoint):
    decoder = build_decoder(Checkpoint(nano_checkpoint("custom_voice")))
    codes = torch.randint(0, 256, (25, 16), generator=torch.Generator().manual_seed(3))
    state, pieces = decoder.zero_state(), []
    with torch.inference_mode():
        for part in codes.split(5):
            samples, *state = decoder(part, *state)
            pieces.append(samples.flatten())
    pcm = torch.cat(pieces)
    assert pcm.numel() == 25 * 1920
    assert 0.05 < float(pcm.square().mean().sqrt()) < 0.25
    assert float(pcm.abs().max()) < 1.0
    assert abs(float(pcm.mean())) < 0.05


def test_only_codes_and_the_end_id_can_win(nano_checkpoint):
    head = Checkpoint(nano_checkpoint("custom_voice")).talker()["codec_head.weight"].numpy()
    used = np.flatnonzero(np.abs(head).sum(axis=1))
    assert used.tolist() == [*range(256), 2150]


def test_mistakes_name_the_choices(tmp_path, capsys):
    with pytest.raises(UsageError, match=", ".join(SIZES)):
        write_random_checkpoint(tmp_path / "x", size="2b")
    with pytest.raises(UsageError, match=", ".join(TYPES)):
        write_random_checkpoint(tmp_path / "x", kind="song")
    with pytest.raises(UsageError, match="bf16, f32"):
        write_random_checkpoint(tmp_path / "x", dtype="f16")
    assert main([str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_command_line(tmp_path, capsys):
    assert main([str(tmp_path / "out"), "--size", "nano", "--type", "base", "--seed", "5"]) == 0
    assert "nano base" in capsys.readouterr().out
    assert json.loads((tmp_path / "out" / "config.json").read_text())["tts_model_type"] == "base"


def test_nothing_is_left_of_a_failed_write(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ouzel.models.qwen3_tts.random_checkpoint.write_shard", fail)
    with pytest.raises(OSError, match="No space"):
        write_random_checkpoint(tmp_path / "out", size="nano")
    assert list(tmp_path.iterdir()) == []
