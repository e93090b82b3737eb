"""Command-line overrides (contract 1.4)."""

import pytest

from ouzel.errors import ConfigError, UsageError
from ouzel.pipeline import Overrides, load_deploy, parse_overrides


def test_nothing_overrides_nothing():
    assert parse_overrides([]) == Overrides(None, None, {})


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--async-chunk"], Overrides(async_chunk=True)),
        (["--no-async-chunk"], Overrides(async_chunk=False)),
        (["--no_async_chunk"], Overrides(async_chunk=False)),
        (["--async-chunk", "--no-async-chunk"], Overrides(async_chunk=False)),
        (["--deploy-config", "qwen3_tts"], Overrides(deploy_config="qwen3_tts")),
        (["--deploy-config=a/b.yaml"], Overrides(deploy_config="a/b.yaml")),
        (["--stage-0-max-num-seqs", "4"], Overrides(stages={0: {"max_num_seqs": 4}})),
        (["--stage_0_max_num_seqs", "4"], Overrides(stages={0: {"max_num_seqs": 4}})),
        (["--stage-0-max_num_seqs=4"], Overrides(stages={0: {"max_num_seqs": 4}})),
        (["--stage-1-async-chunk", "false"], Overrides(stages={1: {"async_chunk": False}})),
        (["--stage-12-gpu-memory-utilization", "0.5"], Overrides(stages={12: {"gpu_memory_utilization": 0.5}})),
        (["--stage-0-edge-threads", "2"], Overrides(stages={0: {"edge": {"threads": 2}}})),
        (
            ["--stage-0-edge-threads", "2", "--stage-0-edge-runtime", "onnxruntime"],
            Overrides(stages={0: {"edge": {"threads": 2, "runtime": "onnxruntime"}}}),
        ),
        (
            ["--stage-0-default-sampling-params", '{"top_k": 4}'],
            Overrides(stages={0: {"default_sampling_params": {"top_k": 4}}}),
        ),
        (["--stage-overrides", '{"0": {"max_num_seqs": 4}}'], Overrides(stages={0: {"max_num_seqs": 4}})),
        (["--stage-overrides", '{"0": {"max_num_seqs": null}}'], Overrides(stages={0: {}})),
        (
            ["--stage-overrides", '{"0": {"max_num_seqs": 4}}', "--stage-0-max-num-seqs", "5", "--stage-0-max-model-len", "6"],
            Overrides(stages={0: {"max_num_seqs": 4, "max_model_len": 6}}),
        ),
    ],
)
def test_arguments(arguments, expected):
    assert parse_overrides(arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--asink-chunk"], "Unknown option '--asink-chunk'. Did you mean '--async-chunk'"),
        (["word"], "Unknown option 'word'"),
        (["--stage-x-max-num-seqs", "4"], "Unknown option '--stage-x-max-num-seqs'"),
        (["--async-chunk=true"], "takes no value"),
        (["--stage-0-max-num-seqs"], "needs a value"),
        (["--deploy-config"], "needs a value"),
        (
            ["--stage-0-max-num-seq", "4"],
            "Unknown stage field 'max-num-seq'. Did you mean 'max_num_seqs'. Valid choices: .*max_model_len",
        ),
        (["--stage-0-stage-id", "4"], "Unknown stage field 'stage-id'"),
        (["--stage-0-edge-thread", "4"], "Did you mean 'edge_threads'"),
        (["--stage-0-edge", "{a"], "--stage-0-edge is not valid YAML"),
        (["--stage-overrides", "{"], "not valid JSON"),
        (["--stage-overrides", "[1]"], "must be a JSON object"),
        (["--stage-overrides", "null"], "must be a JSON object"),
        (["--stage-overrides", '{"-1": {}}'], "keys are stage ids"),
        (["--stage-overrides", '{"a": {}}'], "keys are stage ids"),
        (["--stage-overrides", '{"٣": {}}'], "keys are stage ids"),
        (["--stage-overrides", '{"0": 4}'], "stage 0 must be an object"),
        (["--stage-overrides", '{"0": {"max_num_sqs": 4}}'], "Unknown stage field 'max_num_sqs'"),
    ],
)
def test_mistakes(arguments, message):
    with pytest.raises(UsageError, match=message.replace("?", r"\?").replace("'. Valid", "'.*Valid").replace("[", r"\[")):
        parse_overrides(arguments)


def test_overrides_reach_the_stages(caplog):
    arguments = [
        *("--stage-0-max-num-seqs", "4", "--stage-1-edge-threads", "3", "--no-async-chunk"),
        *("--stage-0-default-sampling-params", '{"temperature": 0.0, "stop_token_ids": [9]}'),
    ]
    with caplog.at_level("INFO", "ouzel.pipeline"):
        deploy = load_deploy("qwen3_tts", overrides=parse_overrides(arguments))
    assert deploy.stage(0).max_num_seqs == 4
    assert deploy.stage(1).max_num_seqs == 64
    assert (deploy.stage(1).edge.runtime, deploy.stage(1).edge.threads) == (None, 3)
    assert not deploy.async_chunk
    sampling = deploy.talker_sampling()
    assert (sampling.temperature, sampling.top_k, sampling.stop_token_ids) == (0.0, 50, (9, 2150))


def test_a_field_that_means_nothing_here_is_named(caplog):
    with caplog.at_level("INFO", "ouzel.pipeline"):
        load_deploy("qwen3_tts", overrides=parse_overrides(["--stage-0-gpu-memory-utilization", "0.5"]))
    assert "no meaning on a device" in caplog.text
    assert "gpu_memory_utilization" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--stage-2-max-num-seqs", "4"], r"command line: Unknown stage of pipeline 'qwen3_tts' '2'.*Valid choices: 0, 1"),
        (
            ["--stage-0-max-num-seqs", "many"],
            r"command line: stage 0\.max_num_seqs must be a whole number of at least 1, found 'many'",
        ),
        (["--stage-0-edge-precision", "3"], r"command line: stage 0\.edge\.precision must be text, found 3"),
        (["--stage-0-edge", '{"thread": 1}'], "Unknown edge key 'thread'"),
        (["--stage-0-async-chunk", "false"], "async_chunk differs at the two ends"),
    ],
)
def test_values_are_checked_like_those_of_a_file(arguments, message):
    with pytest.raises(ConfigError, match=message):
        load_deploy("qwen3_tts", overrides=parse_overrides(arguments))


def test_overrides_given_as_values_are_checked_too():
    assert load_deploy("qwen3_tts", overrides=Overrides(stages={0: {"edge_threads": 2}})).stage(0).edge.threads == 2
    with pytest.raises(UsageError, match="Did you mean 'max_num_seqs'"):
        load_deploy("qwen3_tts", overrides=Overrides(stages={0: {"max_num_sqs": 4}}))
