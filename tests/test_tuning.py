"""`ouzel tune`: what it chooses of given figures, what it measures of a real bundle, what it writes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

import ouzel
from bundles import converted
from cli_run import start
from ouzel.bundle import DEPLOY, BundleWriter, open_bundle
from ouzel.cli.main import main
from ouzel.conversion import convert
from ouzel.errors import SynthesisError, UsageError
from ouzel.models.qwen3_tts.pipeline import PIPELINE
from ouzel.pipeline import load_deploy
from ouzel.tuning import Cell, Finding, cells_of, deploy_text, measure_cells, propose
from ouzel.tuning.cells import thread_counts
from ouzel.tuning.child import lines
from ouzel.tuning.proposal import bits


def finding(stage: str, weights: str, wall: float, cpu: float | None = None, threads: int = 1, runtime: str = "a") -> Finding:
    cpu = wall * threads if cpu is None else cpu
    calls = ((1, wall + 2), (8, 8 * wall + 2)) if stage == "decoder" else ()
    return Finding(Cell(stage, runtime, weights), threads, wall, cpu, calls=calls)


def chosen(*findings: Finding, cores: int = 4) -> list[tuple[str, str, int]]:
    return [(f.cell.runtime, f.cell.weights, f.threads) for f in propose(findings, cores).stages]


FAST = [finding("predictor", "int4", 5), finding("decoder", "fp32", 5)]


def test_the_finest_weights_that_leave_time_to_spare():
    talker = [finding("talker", "int4", 10), finding("talker", "int8", 20), finding("talker", "fp32", 60)]
    assert chosen(*talker, *FAST)[0] == ("a", "int8", 1)  # fp32 would leave less than 30 % of the time
    assert chosen(*talker[:1], *FAST)[0] == ("a", "int4", 1)


def test_no_more_threads_than_are_of_use():
    talker = [finding("talker", "int4", 30), finding("talker", "int4", 20, threads=2), finding("talker", "int4", 15, threads=4)]
    assert chosen(*talker, *FAST)[0] == ("a", "int4", 1)
    slow = [finding("talker", "int4", 90), finding("talker", "int4", 50, threads=2)]
    assert chosen(*slow, *FAST)[0] == ("a", "int4", 2)


def test_of_what_is_too_slow_the_fastest_and_one_that_fits_the_cores():
    talker = [finding("talker", "int8", 200), finding("talker", "int4", 120), finding("talker", "int4", 50, threads=2)]
    proposal = propose([*talker, finding("predictor", "int4", 60), finding("decoder", "fp32", 90)], 2)
    assert (proposal.talker.threads, proposal.sustained) == (2, False)
    assert proposal.rtf > 1


def test_another_runtime_only_where_it_is_better():
    talker = [finding("talker", "int4", 40), finding("talker", "int4", 20, runtime="b")]
    predictor = [finding("predictor", "int4", 30), finding("predictor", "int4", 30.2, runtime="b")]
    assert chosen(*talker, *predictor, FAST[1]) == [("b", "int4", 1), ("b", "int4", 1), ("a", "fp32", 1)]
    predictor[1] = finding("predictor", "int4", 60, runtime="b")
    assert chosen(*talker, *predictor, FAST[1])[1] == ("a", "int4", 1)


def test_what_has_a_problem_is_not_chosen():
    broken = Finding(Cell("talker", "b", "fp32"), problem="it died")
    assert chosen(broken, finding("talker", "int4", 10), *FAST)[0] == ("a", "int4", 1)
    with pytest.raises(SynthesisError, match="Nothing could carry out the talker"):
        propose([broken, *FAST], 4)


def test_chunks_are_as_small_as_their_calls_allow():
    cheap, dear = (Finding(Cell("decoder", "a", "fp32"), 1, 5, 5, calls=((1, 5 + c), (8, 40 + c))) for c in (0.5, 60))
    talker = [finding("talker", "int4", 10), FAST[0]]
    assert propose([*talker, cheap], 4).chunk == 4
    assert propose([*talker, dear], 4).chunk == 25


@pytest.mark.parametrize(
    ("name", "count"), [("fp32", 32), ("bf16", 16), ("int8", 8), ("q4_0", 4), ("q8_0", 8), ("8da4w", 4), ("f16", 16), ("x", 32)]
)
def test_bits_of_weights(name, count):
    assert bits(name) == count


def test_thread_counts():
    assert [thread_counts(n) for n in (1, 2, 3, 6, 8)] == [(1,), (1, 2), (1, 2, 3), (1, 2, 4, 6), (1, 2, 4, 8)]


# ---- a real bundle


@pytest.fixture(scope="module")
def bundle(nano_checkpoint, tmp_path_factory) -> Path:
    """fp32, and int8 beside it."""
    checkpoint = nano_checkpoint("custom_voice")
    out = Path(shutil.copytree(converted(checkpoint), tmp_path_factory.mktemp("tuning") / "two"))
    return convert(checkpoint, out, weights="int8", add=True)


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("OUZEL_HOME", str(tmp_path))
    monkeypatch.delenv("OUZEL_MODEL", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


QUICK = ["--threads", "1", "--seconds", "0.01", "--frames", "4"]


def test_it_measures_chooses_writes_and_the_file_is_spoken_with(home, bundle, capsys):
    assert main(["tune", str(bundle), *QUICK, "-o", "here.yaml", "--json"]) == 0
    out, err = capsys.readouterr()
    report = json.loads(out)
    kinds = {(f["cell"]["stage"], f["cell"]["weights"]) for f in report["findings"]}
    assert kinds == {("talker", "fp32"), ("talker", "int8"), ("predictor", "fp32"), ("predictor", "int8"), ("decoder", "fp32")}
    for found in report["findings"]:
        assert found["problem"] == ""
        assert min(found["wall_ms"], found["cpu_ms"], found["load_s"]) > 0
    assert report["trial"]["frames"] == 4
    assert "talker: onnxruntime int8 on cpu" in err
    assert Path("here.yaml").read_text() == report["deploy"]
    assert stat.S_ISREG(Path("here.yaml").stat().st_mode)
    assert [p.name for p in home.iterdir() if p.suffix == ".yaml"] == ["here.yaml"]
    edge = load_deploy("here.yaml", pipeline=PIPELINE).stage(0).edge
    assert edge.precision == report["proposal"]["talker"]["cell"]["weights"]
    assert main(["say", "Hi.", "-m", str(bundle), "--deploy", "here.yaml", "-o", "a.wav", "-q", "--max-new-tokens", "3"]) == 0
    with ouzel.load(bundle, deploy="here.yaml", warm_up=False) as voice:
        assert voice.placement["talker"].weights == edge.precision
        assert voice.engine.schedule.kind == "auto"
        assert voice.engine.schedule.chunk_frames == report["proposal"]["chunk"]


def test_the_table_marks_what_is_chosen(home, bundle, capsys):
    assert main(["tune", "-m", str(bundle), *QUICK, "-q"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    marked = [line.split()[1] for line in out.splitlines() if line.startswith("*")]
    assert marked == ["talker", "predictor", "decoder"]
    assert "real-time factor" in out
    assert "base_config: qwen3_tts.yaml" in out


def test_what_is_written_stands_on_the_bundles_own_file(bundle, tmp_path):
    shutil.copytree(bundle, tmp_path / "own")
    with BundleWriter(tmp_path / "own", base=open_bundle(tmp_path / "own")) as writer:
        writer.path(DEPLOY).write_text(
            "base_config: qwen3_tts.yaml\nstages: [{stage_id: 0, default_sampling_params: {temperature: 0.25}}]\n"
        )
    own = open_bundle(tmp_path / "own")
    predictor = finding("predictor", "int8", 5, threads=2)
    found = propose([finding("talker", "fp32", 5), predictor, finding("decoder", "fp32", 5, runtime="b")], 8)
    (tmp_path / "tuned.yaml").write_text(deploy_text(own, PIPELINE, found, "A title\nof two lines"))
    text = (tmp_path / "tuned.yaml").read_text()
    assert text.startswith("# A title\n# of two lines\n")
    deploy = load_deploy(tmp_path / "tuned.yaml", pipeline=PIPELINE)
    assert deploy.talker_sampling().temperature == 0.25
    edge = deploy.stage(0).edge
    assert (edge.runtime, edge.precision, edge.threads) == ("a", "fp32", 1)
    assert (edge.of_predictor().precision, edge.of_predictor().threads) == ("int8", 2)
    assert deploy.stage(1).edge.runtime == "b"
    assert deploy.codec_connector().codec_chunk_frames == found.chunk


def test_a_cell_that_cannot_be_measured_does_not_stop_the_others(bundle):
    wrong = [Cell("talker", "onnxruntime", "int3"), Cell("decoder", "onnxruntime", "fp32", "gpu")]
    cells = [*wrong, *cells_of(open_bundle(bundle))[0][:1]]
    found = list(measure_cells(open_bundle(bundle), cells, [1], seconds=0.01))
    assert "no 'talker' for onnxruntime int3" in found[0].problem
    assert "Unknown device of onnxruntime 'gpu'" in found[1].problem
    assert found[2].problem == ""
    assert found[2].wall_ms > 0


def script(folder: Path, body: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def test_a_library_that_dies_takes_nothing_along(bundle, tmp_path):
    dies = script(tmp_path, "echo 'Assertion failed: ne == 0' >&2; kill -SEGV $$")
    cells = cells_of(open_bundle(bundle))[0][:1]
    (found,) = measure_cells(open_bundle(bundle), cells, [1], pythons={"onnxruntime": dies})
    assert "ended with code -11: Assertion failed: ne == 0." in found.problem
    (found,) = measure_cells(open_bundle(bundle), cells, [1], pythons={"onnxruntime": str(tmp_path / "none")})
    assert "none cannot be started (No such file or directory)" in found.problem


def test_a_child_ends_with_the_one_who_asks(tmp_path):
    pid = tmp_path / "pid"
    waits = script(tmp_path, f"echo 'a library says hello'; echo '{{\"a\": 1}}'; echo $$ > {pid}; exec sleep 600")
    asked = lines("stage", python=waits)
    assert next(asked) == {"a": 1}
    while not (pid.exists() and pid.read_text()):  # it is written behind the line that was read
        time.sleep(0.01)
    asked.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--threads", "0"], "--threads '0' must be whole numbers from 1 on"),
        (["--threads", "two"], "--threads 'two' must be"),
        (["--seconds", "0"], "--seconds must be a positive number"),
        (["-o", "none/here.yaml"], "there is no folder none"),
        (["-o", "."], "is a folder; give a file name"),
        (["-m", "x"], "The model is given twice"),
    ],
)
def test_mistakes_are_told_before_anything_is_measured(home, bundle, capsys, arguments, message):
    assert main(["tune", str(bundle), *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "0%" not in err


def test_a_bundle_that_nothing_here_can_run(tmp_path, bundle):
    source = open_bundle(shutil.copytree(bundle, tmp_path / "other"))
    with BundleWriter(source.root, base=source) as writer:
        for artifact in [a for a in writer.artifacts if a.stage == "decoder"]:
            writer.drop(artifact)
            writer.path("elsewhere/decoder").write_bytes(b"x")
            writer.add_artifact("decoder", "elsewhere", "fp32", ["elsewhere/decoder"])
    with pytest.raises(UsageError, match="carries out the decoder of bundle 'bundle': Unknown runtime 'elsewhere'"):
        cells_of(open_bundle(source.root))


def test_ctrl_c_leaves_no_file_and_no_process(home, bundle):
    process = start("tune", bundle, "--threads", "1", "--seconds", "600", "-o", "here.yaml", home=home)
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while process.poll() is None and not (children.exists() and children.read_text()):
            time.sleep(0.05)
        child = int(children.read_text().split()[0])
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        pytest.fail("it did not stop")
    finally:
        process.kill()
    assert (process.returncode, out) == (130, b""), err
    assert b"Traceback" not in err
    assert not Path("here.yaml").exists()
    while Path(f"/proc/{child}").exists():  # it may have been told by its standard input only, which it has to read first
        time.sleep(0.05)
