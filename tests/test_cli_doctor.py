from __future__ import annotations

import json
from pathlib import Path

import pytest

from ouzel.cli.main import main


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("OUZEL_HOME", str(tmp_path))
    monkeypatch.delenv("OUZEL_MODEL", raising=False)
    monkeypatch.setattr("ouzel.bundle.store.embedded_bundle", lambda: None)  # as in a build without a voice
    return tmp_path


def test_without_a_model_it_shows_machine_and_runtimes(home, capsys):
    assert main(["doctor", "--json"]) == 0
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert report["machine"]["cores"] >= 1
    assert report["machine"]["memory_bytes"] > 1 << 28
    ort = next(r for r in report["runtimes"] if r["name"] == "onnxruntime")
    assert ort["available"]
    assert ort["version"]
    assert "stages" not in report
    assert "No model is installed" in err
    assert main(["doctor", "-m", "nobody"]) == 2


def test_with_a_model_it_measures_what_is_used(home, capsys, tiny_bundle):
    assert main(["doctor", "-m", str(tiny_bundle), "--json", "-q", "--threads", "1", "--stage-1-edge_threads", "2"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    report = json.loads(out)
    assert [s["stage"] for s in report["stages"]] == ["talker", "predictor", "decoder"]
    for stage in report["stages"]:
        assert (stage["runtime"], stage["weights"], stage["device"], stage["threads"]) == ("onnxruntime", "fp32", "cpu", 1)
        assert stage["wall_ms"] > 0
        assert stage["cpu_ms"] > 0
    assert report["speed"]["rtf"] == pytest.approx(sum(s["wall_ms"] for s in report["stages"]) / 80)
    assert report["speed"]["auto_first"] >= 1


def test_the_table_for_people(home, capsys, tiny_bundle):
    assert main(["doctor", "-m", str(tiny_bundle), "-q", "--stage-1-edge_threads", "1"]) == 0
    out = capsys.readouterr().out
    for text in ("memory", "RUNTIME", "WALL MS", "talker", "predictor", "decoder", "real-time factor", "auto"):
        assert text in out


def test_a_placement_that_is_not_there_is_an_error_not_a_fallback(home, capsys, tiny_bundle):
    assert main(["doctor", "-m", str(tiny_bundle), "-q", "--stage-0-edge_runtime", "tflite"]) == 2
    out, err = capsys.readouterr()
    assert "no 'talker' for tflite. Valid choices: onnxruntime fp32" in err
    assert "onnxruntime" in out
