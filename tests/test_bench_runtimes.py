"""`python -m ouzel.bench.runtimes` on the smallest shape: every stage in one table, problems told, interpreters found."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import second_runtime
from ouzel.bench.runtimes import interpreters, main
from ouzel.bundle import open_bundle


@pytest.fixture(scope="module")
def work(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("bench")


def arguments(work: Path, *more: str) -> list[str]:
    return ["--size", "nano", "--work", str(work), "--venvs", str(work), "--seconds", "0.01", *more]


def test_every_stage_is_measured(work, capsys):
    assert main(arguments(work, "--runtimes", "onnxruntime", "--weights", "fp32", "--json")) == 0
    out, err = capsys.readouterr()
    assert "converting for onnxruntime: fp32" in err
    found = json.loads(out)["findings"]
    assert [f["cell"]["stage"] for f in found] == ["talker", "predictor", "decoder"]
    for one in found:
        assert min(one["cpu_ms"], one["wall_ms"], one["load_s"]) > 0
        assert one["threads"] == 1


def test_a_runtime_whose_interpreter_fails_is_told_and_the_rest_is_measured(work, capsys):
    with second_runtime.registered() as runtime:
        runtime.available = False
        broken = work / ".venv-second" / "bin" / "python"
        broken.parent.mkdir(parents=True)
        broken.write_text("#!/bin/sh\necho 'its library does not fit' >&2\nexit 3\n")
        broken.chmod(0o755)
        assert interpreters(work)["second"] == str(broken)
        runtime.available = True
        assert interpreters(work)["second"] == sys.executable
        runtime.available = False
        assert main(arguments(work, "--runtimes", "second", "--weights", "onnxruntime=fp32")) == 1
    out, err = capsys.readouterr()
    assert "second: its library does not fit" in out
    assert "converting for onnxruntime" not in err  # it is there from before
    rows = [line.split() for line in out.splitlines()[2:5]]
    assert [row[:3] for row in rows] == [[stage, "onnxruntime", "fp32"] for stage in ("talker", "predictor", "decoder")]
    assert all(float(number) > 0 for row in rows for number in row[3:5])
    assert {a.runtime for a in open_bundle(work / "nano-runtimes").manifest.artifacts} == {"onnxruntime"}


def test_mistakes_are_one_sentence(work, capsys):
    assert main(arguments(work, "--runtimes", "none")) == 2
    assert "ouzel.bench.runtimes: error: Unknown runtime 'none'" in capsys.readouterr().err
