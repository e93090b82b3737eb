"""The server's own deploy files load unmodified and mean the same; golden JSON was written by the real loader."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ouzel.errors import ConfigError
from ouzel.pipeline import CodecConnector, load_deploy

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden" / "deploy"
WHEELS = ROOT / "build" / "wheels"
WHEEL = "vllm_omni-0.30.0-py3-none-any.whl"
FILES = sorted(path.stem for path in GOLDEN.glob("*.json"))
CASES = sorted(path.stem for path in (GOLDEN / "cases").glob("*.json"))
PLATFORMS = ("cpu", "cuda", "npu", "rocm", "xpu", "musa")


@pytest.fixture(scope="session")
def server_deploy(tmp_path_factory):
    """Folder with vLLM-Omni 0.30.0's deploy files, unzipped from its wheel; the wheel is downloaded once."""
    if not (WHEELS / WHEEL).is_file():
        WHEELS.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(WHEELS)]
        subprocess.run([*command, "vllm-omni==0.30.0"], check=True, timeout=300)
    out = tmp_path_factory.mktemp("server")
    with zipfile.ZipFile(WHEELS / WHEEL) as wheel:
        wheel.extractall(out, [name for name in wheel.namelist() if name.startswith("vllm_omni/deploy/qwen3_tts")])
    return out / "vllm_omni" / "deploy"


def golden(folder, stem):
    return json.loads((folder / f"{stem}.json").read_text())["platforms"]


def assert_same(path, platform, expected):
    if "error" in expected:
        with pytest.raises(ConfigError, match="model_runner v2 does not exist"):
            load_deploy(path, platform=platform)
        return
    deploy = load_deploy(path, platform=platform)
    assert deploy.model_runner == expected["model_runner"]
    assert deploy.async_chunk == expected["async_chunk"]
    for stage in deploy.stages:
        server = expected["stages"][str(stage.stage_id)]
        assert stage.async_chunk == server["async_chunk"]
        assert stage.sampling == server["sampling"]
        fields = dict(server["fields"])
        assert stage.subtalker_sampling == (fields.pop("subtalker_sampling_params", None) or {})
        assert stage.silence_ban_frames == fields.pop("silence_ban_frames", 0)
        for name in ("max_num_seqs", "max_model_len", "tts_max_instructions_length"):
            assert getattr(stage, name) == fields.pop(name, None)
        edge_extras = [
            (deploy.connectors[(stage.stage_id, int(key.removeprefix("to_stage_")))].extra, name)
            for key, name in fields.pop("output_connectors", {}).items()
        ] + [
            (deploy.connectors[(int(key.removeprefix("from_stage_")), stage.stage_id)].extra, name)
            for key, name in fields.pop("input_connectors", {}).items()
        ]
        for extra, name in edge_extras:
            assert extra == expected["connectors"][name]["extra"]
        fields.pop("edge", None)
        if fields.get("num_replicas") == 1:
            fields.pop("num_replicas")
        assert stage.ignored == fields


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("stem", FILES)
def test_server_files_merge_as_at_the_server(server_deploy, stem, platform):
    assert_same(server_deploy / f"{stem}.yaml", platform, golden(GOLDEN, stem)[platform])


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("stem", CASES)
def test_twisted_files_merge_as_at_the_server(stem, platform):
    assert_same(GOLDEN / "cases" / f"{stem}.yaml", platform, golden(GOLDEN / "cases", stem)[platform])


def test_there_are_seven_server_files(server_deploy):
    assert sorted(path.stem for path in server_deploy.glob("*.yaml")) == FILES
    assert len(FILES) == 7


def test_values_of_the_main_file(server_deploy):
    deploy = load_deploy(server_deploy / "qwen3_tts.yaml", platform="cuda")
    assert deploy.model_runner == "v2"
    assert deploy.async_chunk
    assert deploy.schedule == "fixed"
    assert deploy.connectors[(0, 1)].name == "SharedMemoryConnector"
    assert deploy.codec_connector() == CodecConnector(
        codec_chunk_frames=25, codec_left_context_frames=72, initial_codec_chunk_frames=1, ref_code_context_frames=72
    )
    talker, decoder = deploy.stages
    assert (talker.max_num_seqs, talker.max_model_len, talker.silence_ban_frames) == (64, 4096, 0)
    assert talker.ignored["max_num_batched_tokens"] == 512
    sampling = deploy.talker_sampling()
    assert (sampling.temperature, sampling.top_k, sampling.top_p) == (0.9, 50, 1.0)
    assert (sampling.repetition_penalty, sampling.min_tokens, sampling.max_tokens) == (1.05, 2, 4096)
    assert sampling.stop_token_ids == (2150,)
    residual = sampling.subtalker
    assert (residual.do_sample, residual.temperature, residual.top_k, residual.top_p) == (True, 0.9, 50, 1.0)
    assert (decoder.max_num_seqs, decoder.max_model_len, decoder.ignored["dtype"]) == (64, 65536, "bfloat16")
    assert decoder.sampling["temperature"] == 0.0
    assert decoder.sampling["max_tokens"] == 65536


@pytest.mark.parametrize(("platform", "runner", "eager"), [("cuda", "v2", False), ("rocm", "v1", True), ("npu", "v1", False)])
def test_platforms_of_the_main_file(server_deploy, platform, runner, eager):
    deploy = load_deploy(server_deploy / "qwen3_tts.yaml", platform=platform.upper())
    assert (deploy.model_runner, deploy.stage(1).ignored["enforce_eager"]) == (runner, eager)


def test_siblings(server_deploy):
    high = load_deploy(server_deploy / "qwen3_tts_high_concurrency.yaml")
    assert (high.stage(1).max_num_seqs, high.stage(1).ignored["devices"]) == (10, "1")
    single = load_deploy(server_deploy / "qwen3_tts_high_concurrency_mrv2_single_gpu.yaml")
    assert (single.stage(0).max_num_seqs, single.stage(1).max_num_seqs, single.stage(1).ignored["devices"]) == (128, 32, "0")
    assert single.connectors[(0, 1)].extra["decode_batch_max_size"] == 8
    aligner = load_deploy(server_deploy / "qwen3_tts_forced_aligner.yaml")
    assert aligner.codec_connector() == CodecConnector()


def test_every_key_that_a_device_does_not_use_is_named_once(server_deploy, caplog):
    with caplog.at_level("INFO", "ouzel.pipeline"):
        load_deploy(server_deploy / "qwen3_tts.yaml")
    (record,) = caplog.records
    for key in ("gpu_memory_utilization", "dtype", "devices", "model_runner", "connector_get_max_wait", "decode_batch_max_size"):
        assert record.getMessage().count(f" {key}") >= 1
    assert record.getMessage().count("gpu_memory_utilization") == 1
    assert "not known here" not in record.getMessage()


def test_the_server_refuses_edge_inside_a_stage_and_accepts_it_on_top():
    """The reason for the two forms of `edge`, as observed on the real 0.30.0."""
    cases = GOLDEN / "cases"
    assert "no structured config owner: edge" in json.loads((cases / "edge_in_stage.json").read_text())["accepted"]
    assert json.loads((cases / "edge_on_top.json").read_text())["accepted"] is True
    assert load_deploy(cases / "edge_in_stage.yaml").stage(0).edge == load_deploy(cases / "edge_on_top.yaml").stage(0).edge


def test_our_file_says_what_the_servers_says(server_deploy):
    ours, server = load_deploy("qwen3_tts"), load_deploy(server_deploy / "qwen3_tts.yaml")
    assert ours.codec_connector() == server.codec_connector()
    assert ours.talker_sampling() == server.talker_sampling()
    for mine, theirs in zip(ours.stages, server.stages, strict=True):
        assert mine.sampling == theirs.sampling
        assert (mine.max_num_seqs, mine.max_model_len) == (theirs.max_num_seqs, theirs.max_model_len)
        assert mine.edge.runtime is None
    assert (ours.schedule, ours.playback.high_water_s, ours.playback.gate) == ("auto", 2.0, True)
