"""What `ouzel say` refuses, with a model at hand; run inside the test process, which is quicker."""

from __future__ import annotations

import io
import shutil
import wave
from pathlib import Path

import numpy as np
import pytest

from cli_run import made
from ouzel.cli.main import main

TEXT = "Good morning to you."


@pytest.fixture
def say(home, capsys):
    """Run `ouzel say` with the arguments; (exit code, stderr)."""

    def run(*arguments: str) -> tuple[int, str]:
        code = main(["say", "-o", "a.wav", *arguments])
        out, err = capsys.readouterr()
        assert out == ""
        return code, err

    return run


@pytest.fixture
def home(tmp_path, tiny_bundle, monkeypatch) -> Path:
    """A home whose only model is the tiny bundle; also the current folder."""
    monkeypatch.setenv("OUZEL_HOME", str(tmp_path))
    monkeypatch.delenv("OUZEL_MODEL", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "tiny").symlink_to(tiny_bundle)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-v", "Vivien"], "Unknown voice 'Vivien'. Did you mean 'vivian'? Valid choices: serena, vivian, "),
        (["--language", "Klingon"], "Unknown language 'Klingon'. Valid choices: auto, chinese, english, "),
        (["--task-type", "Song"], "Unknown task_type 'Song'. Valid choices: "),
        (["--schedule", "sometimes"], "Unknown schedule 'sometimes'. Valid choices: fixed, "),
        (["--temperature", "-1"], "temperature must be"),
        (["--top-p", "2"], "top_p must be"),
        (["--max-new-tokens", "5000"], "max_new_tokens must be from 1 to 4096"),
        (["--deploy-config", "none"], "No deploy file 'none'"),
        (["--stage-0-edge_threads", "two"], "threads must be a whole number"),
        (["--stage-0-edge_runtime", "tflite"], "no 'talker' for tflite. Valid choices: onnxruntime fp32"),
        (["--stage-1-edge_precision", "int4"], "Unknown precision of this decoder 'int4'. Valid choices: auto, fp32"),
        (["--stage-7-edge_threads", "1"], "7"),
        (["--speaker-embedding", "none.npy"], "--speaker-embedding none.npy cannot be read: No such file"),
        (["--speaker-embedding", "a.npz"], "--speaker-embedding a.npz holds several arrays"),
        (["--speaker-embedding", "words.npy"], "--speaker-embedding words.npy must hold numbers, found <U1"),
        (["--ref-codes", "text.npy"], "--ref-codes text.npy cannot be read: it is not a .npy file of numbers"),
        (["--ref-text", "x"], "ref_text"),
    ],
)
def test_requests_that_cannot_be_honoured(home, say, arguments, message):
    np.save(home / "words.npy", np.array(["a", "b"]))
    np.savez(home / "a.npz", x=np.zeros(2))
    (home / "text.npy").write_text("hello")
    code, err = say(TEXT, *arguments)
    assert code == 2
    assert err.startswith("ouzel: error: ")
    assert message in err
    assert made(home) == ["a.npz", "text.npy", "words.npy"]


@pytest.mark.parametrize("text", ["", "  \n", "…", "***", "🙂", "<b></b>"])
def test_texts_that_cannot_be_spoken(home, say, monkeypatch, text):
    stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    code, err = say("-")
    assert (code, err.count("\n")) == (2, 1)
    assert made(home) == []


def test_a_wrong_yaml_type_names_file_and_key(home, say):
    (home / "my.yaml").write_text("async_chunk: 3\nstages: []\n")
    code, err = say(TEXT, "--deploy-config", "my.yaml")
    assert code == 2
    assert "my.yaml: async_chunk must be true or false, found 3" in err


def test_damaged_bundles(home, say, tiny_bundle):
    shutil.copytree(tiny_bundle, home / "mine")
    victim = next((home / "mine" / "onnxruntime").glob("*.onnx"))
    content = victim.read_bytes()
    victim.write_bytes(content[: len(content) // 2])
    code, err = say(TEXT, "-m", "mine")
    assert code == 2
    assert f"{victim.name} has {len(content) // 2} bytes instead of {len(content)}" in err
    victim.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert f"{victim.name} has been altered" in say(TEXT, "-m", "mine")[1]
    assert made(home) == ["mine"]


def test_an_older_file_is_replaced_only_by_a_complete_one(home, say):
    (home / "a.wav").write_bytes(b"old")
    assert say(TEXT, "-v", "nobody")[0] == 2
    assert (home / "a.wav").read_bytes() == b"old"
    assert say(TEXT, "--max-new-tokens", "4")[0] == 0
    with wave.open(str(home / "a.wav")) as file:
        assert file.getnframes() == 3 * 1920
    assert made(home) == ["a.wav"]


def test_voices_lists_names_and_languages(home, capsys):
    assert main(["voices"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[:2] == ["serena", "vivian"]
    assert "languages: auto, chinese, english" in err
    assert main(["voices", "--json", "-m", "TINY"]) == 0
    assert '"task": "CustomVoice"' in capsys.readouterr().out
