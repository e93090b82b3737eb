"""`ouzel.load`: bundle, deploy file and arguments become a voice; what wins over what."""

import numpy as np
import pytest

import ouzel
from ouzel.api.load import engine_options, schedule_of
from ouzel.errors import BundleError, ConfigError, UsageError
from ouzel.models.qwen3_tts.pipeline import PIPELINE
from ouzel.pipeline import Overrides, load_deploy
from ouzel.schedule import ScheduleSpec
from toy_bundle import DEPLOY, registered, write_bundle


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return write_bundle(tmp_path_factory.mktemp("bundles") / "toy")


@pytest.fixture
def runtime():
    with registered() as runtime:
        yield runtime


@pytest.fixture
def deploy(tmp_path):
    path = tmp_path / "deploy.yaml"
    path.write_text(DEPLOY)
    return path


def test_a_loaded_voice_speaks_and_closes(bundle, runtime, deploy):
    with ouzel.load(bundle, deploy=deploy) as voice:
        assert (voice.name, voice.path, voice.task) == ("toy", bundle, "CustomVoice")
        speech = voice.say("Hello.")
        assert (speech.finish_reason, speech.seed) == ("stop", 9)
        assert speech.metrics.chunk_frames[:1] == (2,)
        np.testing.assert_array_equal(voice.say("Hello.").samples, speech.samples)
    with ouzel.load(bundle, deploy=deploy, warm_up=False) as cold:
        assert cold.outlook() is None
        np.testing.assert_array_equal(cold.say("Hello.").samples, speech.samples)


def test_the_deploy_file_places_the_stages_and_arguments_win(bundle, runtime, deploy):
    ouzel.load(bundle, deploy=deploy).close()
    assert [(part, weights, options.threads) for part, weights, options in runtime.loaded] == [
        ("talker", "int4", 3),
        ("predictor", "int4", 3),
        ("decoder", "fp32", 2),
    ]
    runtime.loaded.clear()
    overrides = {0: {"edge": {"precision": "fp32"}}}
    ouzel.load(bundle, deploy=deploy, threads=1, overrides=overrides).close()
    assert [(part, weights, options.threads) for part, weights, options in runtime.loaded] == [
        ("talker", "fp32", 1),
        ("predictor", "fp32", 1),
        ("decoder", "fp32", 1),
    ]


def test_overrides_may_come_as_the_command_lines_value(bundle, runtime, deploy):
    given = Overrides(async_chunk=False, stages={0: {"default_sampling_params": {"seed": 4}}})
    with ouzel.load(bundle, deploy=deploy, overrides=given) as voice:
        speech = voice.say("Hello.")
    assert speech.seed == 4
    assert len(speech.metrics.chunk_frames) == 1


@pytest.mark.parametrize("schedule", ["fixed:1/3", ScheduleSpec("fixed", chunk_frames=3, initial_frames=1)])
def test_the_schedule_argument_wins(bundle, runtime, deploy, schedule):
    with ouzel.load(bundle, deploy=deploy, schedule=schedule) as voice:
        assert voice.say("Hello.").metrics.chunk_frames[:3] == (1, 3, 3)


@pytest.mark.parametrize(("stuck", "enabled"), [(None, True), (True, True), (False, False), (ouzel.StuckPolicy(False), False)])
def test_the_stuck_detector_can_be_switched(bundle, runtime, deploy, stuck, enabled):
    with ouzel.load(bundle, deploy=deploy, stuck=stuck, warm_up=False) as voice:
        assert voice.engine.options.stuck.enabled is enabled
        assert voice.engine.options.high_water_s == 1.5


def test_a_weight_that_the_bundle_lacks_is_an_error(bundle, runtime, deploy):
    with pytest.raises(UsageError, match=r"Unknown precision of this talker 'int8'.*The bundle has it for toy int4, toy fp32"):
        ouzel.load(bundle, deploy=deploy, overrides={0: {"edge": {"precision": "int8"}}})


def test_mistakes_are_named(bundle, runtime, deploy):
    with pytest.raises(BundleError):
        ouzel.load(bundle / "nothing")
    with pytest.raises(ConfigError):
        ouzel.load(bundle, deploy="no-such-file.yaml")
    with pytest.raises(ConfigError, match="schedule"):
        ouzel.load(bundle, deploy=deploy, schedule="sometimes")
    with pytest.raises(UsageError, match="edge key"):
        ouzel.load(bundle, deploy=deploy, overrides={0: {"edge": {"thread": 1}}})


def config(tmp_path, text):
    path = tmp_path / "qwen3_tts.yaml"
    path.write_text(text)
    return load_deploy(path, pipeline=PIPELINE)


EXTRA = "{codec_chunk_frames: 8, initial_codec_chunk_frames: 2}"


@pytest.mark.parametrize(
    ("extra", "playback", "flag"),
    [
        (EXTRA, "", "fixed:2/8"),
        ("{codec_chunk_frames: 8, codec_chunk_ramp: [2, 4, 8]}", "", "ramp:2,4,8"),
        ("{codec_chunk_frames: 8, codec_chunk_ramp: [2, 4, 8], codec_chunk_adaptive: true}", "", "adaptive:8"),
        ("{codec_chunk_frames: 8, codec_chunk_ramp: [2, 4, 8]}", "schedule: auto, ", "auto:8"),
        ("{codec_chunk_frames: 8, codec_chunk_ramp: [2, 4, 8], codec_chunk_adaptive: true}", "schedule: ramp, ", "ramp:2,4,8"),
        ("{codec_chunk_frames: 8, codec_chunk_ramp: [2, 4, 8]}", "schedule: fixed, ", "fixed:8"),
        (EXTRA, "schedule: full, ", "full"),
    ],
)
def test_the_schedule_is_what_the_yaml_says(tmp_path, extra, playback, flag):
    text = DEPLOY.replace(EXTRA, extra).replace("{high_water_s", "{" + playback + "high_water_s")
    assert str(schedule_of(config(tmp_path, text))) == flag


def test_engine_options_come_from_the_yaml(tmp_path):
    found = engine_options(config(tmp_path, DEPLOY))
    assert (found.high_water_s, found.max_num_seqs) == (1.5, 16)


def test_the_context_and_the_instruction_limit_of_the_deploy_file_hold(tiny_bundle):
    stage = {0: {"max_model_len": 40, "tts_max_instructions_length": 5}}
    with ouzel.load(tiny_bundle, overrides=stage, warm_up=False, stuck=False) as voice:
        short = voice.say("Hi.", greedy=True)
        assert short.finish_reason == "length"
        assert short.metrics.frames < 40
        with pytest.raises(UsageError, match="context of 40"):
            voice.say("A text that is longer than the forty rows of this context.", greedy=True)
        with pytest.raises(UsageError, match="at most 5 characters"):
            voice.say("Hi.", instructions="too long")


def test_bounds_of_the_queue_leave_the_deploy_file_its_other_options(tmp_path):
    path = write_bundle(tmp_path / "toy")
    (tmp_path / "own.yaml").write_text(DEPLOY, encoding="utf-8")
    with registered(), ouzel.load(path, deploy=tmp_path / "own.yaml", max_active=3, max_waiting=5, warm_up=False) as voice:
        found = voice.engine.options
    assert (found.max_active, found.max_waiting, found.high_water_s, found.max_num_seqs) == (3, 5, 1.5, 16)
