"""docs/placement.md and the deploy files for kinds of devices hold what is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ouzel
from ouzel.cli.main import main
from ouzel.models.qwen3_tts.pipeline import PIPELINE
from ouzel.pipeline import EdgeOptions, load_deploy
from ouzel.pipeline.source import bundled
from ouzel.runtimes.registry import get_runtime, runtimes

PAGE = (Path(__file__).parents[1] / "docs" / "placement.md").read_text(encoding="utf-8")
PRESETS = {
    "arm-linux": (EdgeOptions("llama_cpp", 3, "q4_0"), EdgeOptions("onnxruntime", 1)),
    "apple-silicon": (EdgeOptions("llama_cpp", 4, "q8_0"), EdgeOptions("onnxruntime", 2)),
    "android-qualcomm": (EdgeOptions("mnn", 4, "int4"), EdgeOptions("mnn", 2)),
    "jetson": (EdgeOptions("llama_cpp", 4, "q8_0"), EdgeOptions("onnxruntime", 2)),
}


def test_there_is_a_file_for_each_target_and_the_page_names_it():
    assert set(bundled()) == {*PRESETS, "qwen3_tts"}
    for name in PRESETS:
        assert f"| `{name}` |" in PAGE


@pytest.mark.parametrize("name", PRESETS)
def test_a_file_places_the_stages_and_leaves_the_rest_to_the_base(name):
    deploy, base = load_deploy(name, pipeline=PIPELINE), load_deploy("qwen3_tts")
    assert (deploy.stage(0).edge, deploy.stage(1).edge) == PRESETS[name]
    assert deploy.codec_connector() == base.codec_connector()
    assert deploy.talker_sampling() == base.talker_sampling()
    assert deploy.schedule == "auto"
    for stage, edge in zip(("talker", "decoder"), PRESETS[name], strict=True):
        if edge.runtime in runtimes():  # the others' extras are not registered in this build
            assert edge.precision in ("auto", *get_runtime(edge.runtime).offer.stages[stage])


@pytest.mark.parametrize("name", PRESETS)
def test_with_fallback_a_file_speaks_a_bundle_without_its_runtimes(name, tiny_bundle, tmp_path, monkeypatch, capsys, caplog):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OUZEL_HOME", str(tmp_path))
    say = [
        "say",
        "Hi.",
        "-m",
        str(tiny_bundle),
        "-o",
        "a.wav",
        "--max-new-tokens",
        "3",
        "--threads",
        "1",
        "--deploy-config",
        name,
    ]
    asked = PRESETS[name][0].runtime
    assert main(say) == 2
    assert f"no 'talker' for {asked}" in capsys.readouterr().err
    assert not Path("a.wav").exists()
    assert main([*say, "--fallback"]) == 0
    assert "The talker runs on onnxruntime, fp32, cpu, instead." in caplog.text
    assert Path("a.wav").stat().st_size > 44


def test_the_flags_place_the_stages(tiny_bundle, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("OUZEL_HOME", str(tmp_path))
    where = ["doctor", "-m", str(tiny_bundle), "-q", "--threads", "1"]
    assert main([*where, "--talker", "onnxruntime", "--predictor", "onnxruntime", "--decoder", "onnxruntime"]) == 0
    out = capsys.readouterr().out
    for text in ("OFFERS", "talker, predictor: int4 int8 fp32; decoder: fp32 fp16 int8", "DEVICES"):
        assert text in out
    for flag, stage in (("--talker", "talker"), ("--predictor", "predictor"), ("--decoder", "decoder")):
        assert main([*where, flag, "tflite"]) == 2
        assert f"no '{stage}' for tflite" in capsys.readouterr().err
    assert main([*where, "--decoder", "tflite", "--fallback"]) == 0
    assert re.search(r"decoder .*onnxruntime .*fallback: .*no 'decoder' for tflite", capsys.readouterr().out)


def test_the_deploy_block_means_what_the_page_says(tmp_path):
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "d.yaml").write_text(block)
    edge = load_deploy(tmp_path / "d.yaml", pipeline=PIPELINE).stage(0).edge
    assert (edge.runtime, edge.precision) == ("llama_cpp", "q4_0")
    assert edge.of_predictor() == EdgeOptions("onnxruntime", 2, "int4")


def test_the_python_of_the_page_runs(tiny_bundle, monkeypatch, capsys):
    (snippet,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    load = ouzel.load
    monkeypatch.setattr(ouzel, "load", lambda **options: load(tiny_bundle, stuck=False, warm_up=False, **options), raising=False)
    monkeypatch.setattr(ouzel.Voice, "say", lambda voice, text, say=ouzel.Voice.say: say(voice, text, max_new_tokens=4))
    exec(compile(snippet, "placement.md", "exec"), {"__name__": "snippet"})
    assert "runtime='onnxruntime', weights='fp32', device='cpu', threads=2" in capsys.readouterr().out
