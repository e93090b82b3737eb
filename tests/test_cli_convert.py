"""`ouzel convert` and `ouzel pull` with real (tiny, random) checkpoints."""

from __future__ import annotations

import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from cli_run import error_of, made, ouzel, start
from hub_server import COMMIT, hub_server
from ouzel.bundle import open_bundle
from ouzel.cli.main import main


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("OUZEL_HOME", str(tmp_path))
    for name in ("OUZEL_MODEL", "HF_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def checkpoint(home, nano_checkpoint) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(nano_checkpoint("custom_voice"), home / "ckpt"))


def test_converts_lists_and_speaks(home, checkpoint, capsys):
    assert main(["convert", "ckpt", "models/mine", "--weights", "int4"]) == 0
    out, err = capsys.readouterr()
    assert out == f"{home / 'models' / 'mine'}\n"
    assert "0% reading the checkpoint" in err
    assert "100% done" in err
    manifest = open_bundle(home / "models" / "mine").manifest
    assert {a.stage: a.weights for a in manifest.artifacts} == {"talker": "int4", "predictor": "int4", "decoder": "fp32"}
    assert manifest.placement["decoder"] == {"runtime": "onnxruntime", "weights": "fp32"}
    assert {"ouzel", "torch", "onnx", "onnxruntime"} <= set(manifest.versions)
    assert "model.safetensors" in manifest.source["files"]
    assert main(["say", "Hello there.", "-o", "a.wav", "--max-new-tokens", "4", "-q"]) == 0
    assert (home / "a.wav").stat().st_size == 44 + 3 * 1920 * 2


def spoil_nan(folder: Path) -> None:
    path = folder / "speech_tokenizer" / "model.safetensors"
    tensors = load_file(path)
    name = next(n for n, t in tensors.items() if t.dtype == np.float32 and t.size > 8)
    tensors[name].reshape(-1)[3] = np.nan
    save_file(tensors, path)


def spoil_short(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (spoil_nan, "NaN"),
        (spoil_short, "model.safetensors"),
        (lambda f: (f / "model.safetensors").write_bytes(b"garbage"), "model.safetensors"),
        (lambda f: (f / "model.safetensors").unlink(), "safetensors"),
        (lambda f: (f / "config.json").write_text('{"model_type": "qwen3_tts"}'), "config.json lacks talker_config"),
        (lambda f: (f / "config.json").write_text('{"model_type": "whisper"}'), "no known model family. Known: qwen3_tts"),
        (lambda f: (f / "speech_tokenizer" / "config.json").unlink(), "config.json"),
        (lambda f: (f / "vocab.json").unlink(), "vocab.json"),
        (lambda f: (f / "vocab.json").write_text("[" * 100_000), "vocab.json is not valid JSON"),
        (lambda f: (f / "config.json").write_text("[" * 100_000), "config.json cannot be read"),
        (lambda f: (f / "merges.txt").write_bytes(b"\xff"), "merges.txt is not UTF-8"),
        (lambda f: (f / "tokenizer_config.json").write_text('{"added_tokens_decoder": {"x": 3}}'), "added token 'x' is damaged"),
        (lambda f: (f / "tokenizer_config.json").write_text('{"added_tokens_decoder": {"3": {}}}'), "added token '3' is damaged"),
        (lambda f: (f / "tokenizer.json").write_text('{"added_tokens": [null]}'), "added_tokens must be a list of objects"),
    ],
)
def test_unusable_checkpoints_are_one_sentence_and_leave_nothing(home, checkpoint, capsys, spoil, message):
    spoil(checkpoint)
    assert main(["convert", "ckpt", "out", "-q"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ouzel: error: ")
    assert message in err
    assert made(home) == ["ckpt"]


def test_ctrl_c_while_converting_leaves_nothing(home, checkpoint):
    """Interrupted where it reads a file that has no end: an import, of which it does many, may swallow what a handler raises."""
    (checkpoint / "merges.txt").unlink()
    os.mkfifo(checkpoint / "merges.txt")
    process = start("convert", checkpoint, "out", home=home)
    try:
        end = None
        while process.poll() is None and end is None:
            with suppress(OSError):  # nobody reads it yet
                end = os.open(checkpoint / "merges.txt", os.O_WRONLY | os.O_NONBLOCK)
            time.sleep(0.02)
        assert made(home) == ["ckpt", "out.partial"]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
        assert end is not None
        os.close(end)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert out == b""
    assert err.endswith(b"ouzel: error: interrupted.\n")
    assert b"Traceback" not in err
    assert made(home) == ["ckpt"]


def test_pull_is_interrupted_and_goes_on(home, tiny_bundle):
    with hub_server() as hub:
        hub.add_folder("acme/voice", tiny_bundle)
        big = max(hub.repos["acme/voice"], key=lambda name: len(hub.repos["acme/voice"][name]))
        half = len(hub.repos["acme/voice"][big]) // 2
        hub.stall_after = {big: half}
        process = start("pull", "acme/voice", "--endpoint", hub.url, home=home)
        part = home / "cache" / "hub" / "acme--voice" / COMMIT / f"{big}.part"
        try:
            assert hub.served.wait(300)
            while process.poll() is None and not (part.exists() and part.stat().st_size):
                time.sleep(0.02)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=300)
        finally:
            process.kill()
        assert (process.returncode, out) == (130, b""), err
        kept = part.stat().st_size
        assert 0 < kept <= half
        assert not (home / "models").exists()
        hub.stall_after = {}
        hub.log.clear()
        done = ouzel("pull", "acme/voice", "--endpoint", hub.url, home=home)
        assert done.returncode == 0, done.stderr
        assert done.stdout.decode() == f"{home / 'models' / 'voice'}\n"
        assert set(hub.ranges()) == {f"bytes={kept}-"}
        assert open_bundle(home / "models" / "voice").manifest == open_bundle(tiny_bundle).manifest
        assert "is not found" not in done.stderr.decode()
        hub.damaged.add(big)
        text = error_of(ouzel("pull", "acme/voice", "--endpoint", hub.url, "--force", "-q", home=home), 1)
        assert f"{big} of acme/voice arrived damaged" in text
        assert open_bundle(home / "models" / "voice")


def test_pull_converts_a_real_checkpoint(home, nano_checkpoint, capsys):
    with hub_server() as hub:
        hub.add_folder("acme/nano", nano_checkpoint("custom_voice"))
        assert main(["pull", "acme/nano", "--endpoint", hub.url, "--weights", "int8"]) == 0
    place = home / "models" / "nano-int8"
    assert capsys.readouterr().out == f"{place}\n"
    manifest = open_bundle(place).manifest
    assert manifest.source["repo"] == "acme/nano"
    assert {a.weights for a in manifest.artifacts} == {"int8", "fp32"}
