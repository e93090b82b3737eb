from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ouzel.cli.main import main


@pytest.fixture
def store(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("OUZEL_HOME", str(tmp_path))
    monkeypatch.setattr("ouzel.bundle.store.embedded_bundle", lambda: None)  # as in a build without a voice
    (tmp_path / "models").mkdir()
    return tmp_path / "models"


def test_an_empty_store_says_how_to_fill_it(store, capsys):
    assert main(["models"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "`ouzel pull REPO` fetches one" in err


def test_the_table_and_the_json_list(store, capsys, tiny_bundle):
    (store / "anna").symlink_to(tiny_bundle)
    assert main(["models"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["NAME", "FAMILY", "TASK", "SIZE", "RUNS", "ON", "PATH"]
    assert row.split()[:3] == ["anna", "qwen3_tts", "CustomVoice"]
    assert "onnxruntime fp32" in row
    assert row.endswith(str(store / "anna"))
    assert main(["models", "--json"]) == 0
    (facts,) = json.loads(capsys.readouterr().out)
    assert (facts["name"], facts["family"], facts["task"]) == ("anna", "qwen3_tts", "CustomVoice")
    assert facts["runtimes"] == {"onnxruntime": ["fp32"]}
    assert facts["bytes"] > 1_000_000


def test_damage_is_found_by_verify_and_told_by_the_exit_code(store, capsys, tiny_bundle):
    shutil.copytree(tiny_bundle, store / "bert")
    (store / "carl").mkdir()
    (store / "carl" / "manifest.json").write_text("{")
    assert main(["models"]) == 2
    out, err = capsys.readouterr()
    assert [line.split()[1] for line in out.splitlines()[1:]] == ["qwen3_tts", "damaged"]
    assert err.count("ouzel: ") == 1
    shutil.rmtree(store / "carl")
    assert main(["models", "--verify"]) == 0
    config = store / "bert" / "config.json"
    config.write_bytes(config.read_bytes().replace(b"a", b"b", 1))
    assert main(["models", "--verify"]) == 2
    assert "config.json has been altered" in capsys.readouterr().err
