"""Loading deploy files: names, chains, layouts, types, validation (contract 1.1, 1.2, 1.4, 1.5)."""

import re

import pytest

from ouzel.errors import ConfigError
from ouzel.pipeline import Overrides, PipelineConfig, StageConfig, load_deploy
from ouzel.pipeline.source import bundled, parse

# Nine times nine times nine …: half a kilobyte that becomes a gigabyte when it is written out.
LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.fixture
def write(tmp_path):
    def writer(text, name="deploy.yaml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return writer


def fails(path, *words, **options):
    with pytest.raises(ConfigError) as caught:
        load_deploy(path, **options)
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_bare_names_are_bundled_files():
    assert "qwen3_tts" in bundled()
    assert load_deploy("qwen3_tts").path == load_deploy("qwen3_tts.yaml").path


def test_a_missing_file_lists_the_bundled_names(tmp_path):
    fails("no_such", "No deploy file 'no_such'", "qwen3_tts")
    fails(tmp_path / "qwen3_tts.yaml", "No deploy file", "qwen3_tts")
    fails(tmp_path, "No deploy file")


def test_a_file_in_the_way_wins_over_a_bundled_name(write, monkeypatch, tmp_path):
    write("stages: [{stage_id: 0, max_num_seqs: 3}]", "qwen3_tts")
    monkeypatch.chdir(tmp_path)
    assert load_deploy("qwen3_tts").stage(0).max_num_seqs == 3


def test_an_empty_file_is_all_defaults(write):
    deploy = load_deploy(write("# nothing\n"))
    assert deploy.async_chunk
    assert [stage.stage_id for stage in deploy.stages] == [0, 1]
    assert deploy.schedule == "fixed"
    assert deploy.stage(0).sampling == {"detokenize": False, "stop_token_ids": [2150]}


def test_chain_of_folders(write):
    write("async_chunk: false\nstages: [{stage_id: 0, max_num_seqs: 3, silence_ban_frames: 4}]", "base/a.yaml")
    write("base_config: ../base/a.yaml\nstages: [{stage_id: 0, max_num_seqs: 5}]", "mid/b.yaml")
    deploy = load_deploy(write("base_config: mid/b.yaml\nstages: [{stage_id: 1, max_num_seqs: 2}]"))
    assert not deploy.async_chunk
    assert (deploy.stage(0).max_num_seqs, deploy.stage(0).silence_ban_frames, deploy.stage(1).max_num_seqs) == (5, 4, 2)


def test_a_circle_of_bases_is_named(write):
    write("base_config: b.yaml", "a.yaml")
    fails(write("base_config: a.yaml", "b.yaml"), "circle", "b.yaml -> a.yaml -> b.yaml")
    fails(write("base_config: own.yaml", "own.yaml"), "circle", "own.yaml -> own.yaml")


def test_a_missing_base_is_named(write):
    fails(write("base_config: gone.yaml"), "base_config 'gone.yaml' does not exist")


def test_the_error_names_the_file_at_fault_not_the_one_asked_for(write):
    bad = write("stages: [{stage_id: 0, max_num_seqs: many}]", "bad.yaml")
    fails(write("base_config: bad.yaml\nstages: [{stage_id: 0, max_num_seqs: 4}]"), str(bad), "stages[0].max_num_seqs", "'many'")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- a", ("the document must be a mapping",)),
        ("async_chunk: 'yes'", ("async_chunk must be true or false", "'yes'")),
        ("async_chunk:", ("async_chunk must be true or false", "None")),
        ("stages: {0: {}}", ("stages must be a list",)),
        ("stages: [3]", ("stages[0] must be a mapping",)),
        ("stages: [{max_num_seqs: 1}]", ("stages[0].stage_id is missing",)),
        ("stages: [{stage_id: '0'}]", ("stages[0].stage_id must be a whole number", "'0'")),
        ("stages: [{stage_id: true}]", ("stages[0].stage_id must be a whole number",)),
        ("stages: [{stage_id: 0}, {stage_id: 0}]", ("stage_id 0 twice",)),
        ("stages: [{stage_id: 0, max_num_seqs: 0}]", ("max_num_seqs must be a whole number of at least 1", "0")),
        ("stages: [{stage_id: 0, max_model_len: 4096.0}]", ("max_model_len must be a whole number", "4096.0")),
        ("stages: [{stage_id: 0, async_chunk: 0}]", ("stages[0].async_chunk must be true or false",)),
        ("stages: [{stage_id: 0, silence_ban_frames: -1}]", ("silence_ban_frames must be a whole number of at least 0",)),
        ("stages: [{stage_id: 0, default_sampling_params: 3}]", ("default_sampling_params must be a mapping",)),
        ("stages: [{stage_id: 0, engine_args: [a]}]", ("stages[0].engine_args must be a mapping",)),
        ("stages: [{stage_id: 0, default_sampling_params: {stop_token_ids: 5}}]", ("stop_token_ids must be a list",)),
        ("stages: [{stage_id: 0, default_sampling_params: {temperature: hot}}]", ("temperature must be a number", "'hot'")),
        ("stages: [{stage_id: 0, default_sampling_params: {temperature: -1}}]", ("temperature must be a number of at least 0",)),
        ("stages: [{stage_id: 0, default_sampling_params: {top_p: 1.5}}]", ("top_p must be a number above 0 and at most 1",)),
        ("stages: [{stage_id: 0, subtalker_sampling_params: {top_p: 0.9}}]", ("top_p must be 1.0",)),
        ("stages: [{stage_id: 0, subtalker_sampling_params: {topk: 5}}]", ("Did you mean 'top_k'",)),
        ("stages: [{stage_id: 0, output_connectors: {to_stage_1: 5}}]", ("to_stage_1 must be text",)),
        ("stages: [{stage_id: 0, output_connectors: {stage_1: c}}]", ("stage_1 must be called to_stage_<stage id>",)),
        ("pipeline: qwen_tts", ("Unknown pipeline 'qwen_tts'", "Did you mean 'qwen3_tts'")),
        ("model_runner: v3", ("model_runner must be one of v1, v2", "'v3'")),
        ("platforms: {npu: {model_runner: 2}}", ("platforms.npu.model_runner must be one of v1, v2",)),
        ("platforms: {npu: {stages: [{stage_id: 0, max_num_seqs: x}]}}", ("platforms.npu.stages[0].max_num_seqs",)),
        ("stage_args: []", ("stage_args is the old layout", "stages:")),
        ("connectors: [a]", ("connectors must be a mapping",)),
        ("connectors: {c: {extra: 1, name: SharedMemoryConnector}}", ("connectors.c.extra must be a mapping",)),
        ("connectors: {c: {extra: {}}}", ("connectors.c.name is missing", "SharedMemoryConnector")),
        ("connectors: {c: {name: SharedMemory}}", ("Unknown connector 'SharedMemory'", "Did you mean 'SharedMemoryConnector'")),
        ("stages: [{stage_id: 0, use_v2_model_runner: true}]", ("use_v2_model_runner cannot be set",)),
        ("stages: [{stage_id: 0, engine_extras: {supports_native_mrv2_data_plane: true}}]", ("cannot be set",)),
        ("a: 1\na: 2", ("not valid YAML", "'a' is repeated", "line 2")),
        ("a: [1", ("not valid YAML", "line 1")),
        ("a: !!int ''", ("a value that does not fit its YAML type",)),
        ("a: !!bool x", ("a value that does not fit its YAML type",)),
        ("a: " + "9" * 5000, ("a value that does not fit its YAML type",)),
        ("base_config: " + "a" * 300, ("does not exist",)),
        (LAUGHS, ("has more than 20,000 values",)),
        ("a: ${oc.env:HOME}", ("interpolation",)),
        ("a: &a [*a]", ("contains itself",)),
        (
            "stages: [{stage_id: 0, default_sampling_params: {temperature: 1" + "0" * 400 + "}}]",
            ("must be a number of at least 0",),
        ),
        ("1.5: x", ("key 1.5 in the document must be a name",)),
    ],
)
def test_what_is_wrong_is_named(write, text, words):
    path = write(text)
    fails(path, str(path), *words)


def test_bytes_that_are_not_text(write, tmp_path):
    (tmp_path / "latin.yaml").write_bytes(b"a: \xff")
    fails(tmp_path / "latin.yaml", "cannot be read")


def test_numbers_are_read_as_the_server_reads_them(write):
    assert parse(write("a: 1e-3\nb: -2E4\nc: 2024-01-02\nd: 012\ne: 1.5e3")) == {
        "a": 0.001,
        "b": -20000.0,
        "c": "2024-01-02",
        "d": 10,
        "e": 1500.0,
    }


def test_the_files_own_pipeline_key_goes_first(write):
    other = PipelineConfig("other", (StageConfig(id=0, model_stage="x", final_output=True),))
    assert load_deploy(write("{}"), pipeline=other).pipeline is other
    assert load_deploy(write("pipeline: qwen3_tts"), pipeline=other).pipeline.model_type == "qwen3_tts"
    assert load_deploy(write("{}"), pipeline="qwen3_tts").pipeline.model_type == "qwen3_tts"


def test_a_single_stage_is_never_async(write):
    single = PipelineConfig("one", (StageConfig(id=0, model_stage="x", final_output=True, async_processor="math:sqrt"),))
    deploy = load_deploy(write("async_chunk: true"), pipeline=single, overrides=Overrides(async_chunk=True))
    assert not deploy.async_chunk
    assert deploy.schedule == "full"


def test_async_needs_a_stage_that_can_stream(write):
    stages = (StageConfig(id=0, model_stage="x"), StageConfig(id=1, model_stage="y", input_sources=(0,), final_output=True))
    plain = PipelineConfig("plain", stages)
    fails(write("async_chunk: true"), "no stage of pipeline 'plain' can stream", pipeline=plain)
    assert not load_deploy(write("async_chunk: false"), pipeline=plain).async_chunk


@pytest.mark.parametrize("opted_out", [0, 1])
def test_both_ends_of_an_edge_agree_on_async(write, opted_out):
    text = f"stages: [{{stage_id: {opted_out}, async_chunk: false}}]"
    fails(write(text), "async_chunk differs at the two ends of edge 0 -> 1")
    both = load_deploy(write("stages: [{stage_id: 0, async_chunk: false}, {stage_id: 1, async_chunk: false}]"))
    assert [stage.async_chunk for stage in both.stages] == [False, False]
    assert load_deploy(write(f"async_chunk: false\n{text}")).schedule == "full"


def test_a_true_stage_does_not_opt_in(write):
    deploy = load_deploy(write("async_chunk: false\nstages: [{stage_id: 0, async_chunk: true}]"))
    assert not deploy.stage(0).async_chunk


@pytest.mark.parametrize("platform", ["npu", "XPU"])
def test_runner_v2_does_not_exist_everywhere(write, platform):
    fails(write("model_runner: v2"), f"model_runner v2 does not exist on {platform.lower()}", platform=platform)
    text = f"model_runner: v2\nplatforms: {{{platform.lower()}: {{model_runner: v1}}}}"
    assert load_deploy(write(text), platform=platform).model_runner == "v1"


def test_stages_of_another_pipeline_are_named(write, caplog):
    deploy = load_deploy(write("stages: [{stage_id: 5, max_num_seqs: 1}]"))
    assert [stage.stage_id for stage in deploy.stages] == [0, 1]
    assert re.search(r"stage \[5\] is not part of pipeline qwen3_tts", caplog.text)


def test_unknown_keys_are_accepted_and_named_once(write, caplog):
    text = """
    asinc_chunk: true
    stages:
      - {stage_id: 0, max_num_seq: 3, gpu_memory_utilization: 0.5, default_sampling_params: {frequency_penalty: 1.0}}
      - {stage_id: 1, gpu_memory_utilization: 0.5}
    connectors: {c: {name: NixlConnector, extra: {codec_chunk_frame: 3}}}
    """
    with caplog.at_level("INFO", "ouzel.pipeline"):
        load_deploy(write(text))
    (record,) = caplog.records
    message = record.getMessage()
    assert record.levelname == "INFO"
    assert message.count("gpu_memory_utilization") == 1
    assert "no meaning on a device: gpu_memory_utilization;" in message
    for near in (
        "asinc_chunk (did you mean async_chunk?)",
        "stage 0: max_num_seq (did you mean max_num_seqs?)",
        "connectors.c.extra.codec_chunk_frame (did you mean codec_chunk_frames?)",
        "stage 0: default_sampling_params.frequency_penalty",
    ):
        assert near in message


def test_a_clean_file_says_nothing(write, caplog):
    with caplog.at_level("INFO", "ouzel.pipeline"):
        load_deploy(write("stages: [{stage_id: 0, max_num_seqs: 3}]"))
    assert not caplog.records
