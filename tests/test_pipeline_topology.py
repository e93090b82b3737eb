"""Stages and joins (contract 2.1), and pipelines by name (contract 2.2)."""

import pytest

from ouzel.errors import ConfigError
from ouzel.pipeline import (
    ExecutionType,
    PipelineConfig,
    StageConfig,
    get_pipeline,
    pipelines,
    register_pipeline,
    resolve_pipeline,
    resolve_processor,
    unregister_pipeline,
)


def pipeline(*stages, model_type="toy", **more):
    return PipelineConfig(model_type, stages, **more)


ENTRY = StageConfig(id=0, model_stage="a")
LAST = StageConfig(id=1, model_stage="b", input_sources=(0,), final_output=True)


@pytest.mark.parametrize(
    ("stages", "fault"),
    [
        ((), "no stages"),
        ((ENTRY, ENTRY, LAST), "stage id 0 is used twice"),
        ((ENTRY, StageConfig(id=1, model_stage="b", input_sources=(4,), final_output=True)), "stage 1 takes input from stage 4"),
        ((ENTRY, StageConfig(id=1, model_stage="b", input_sources=(1,), final_output=True)), "stage 1 takes its own output"),
        ((LAST, StageConfig(id=0, model_stage="a", input_sources=(1,))), "no stage is an entry"),
        ((ENTRY,), "no stage has final_output"),
    ],
)
def test_topology_faults(stages, fault):
    with pytest.raises(ConfigError, match=fault):
        pipeline(*stages)


def test_all_faults_are_named_at_once():
    with pytest.raises(ConfigError, match=r"its own output.*no stage is an entry.*no stage has final_output"):
        pipeline(StageConfig(id=0, model_stage="a", input_sources=(0,)))


def test_qwen3_tts_is_the_contracts_topology():
    found = get_pipeline("qwen3_tts")
    talker, decoder = found.stages
    assert found.model_arch == "Qwen3TTSTalkerForConditionalGeneration"
    assert found.edges == ((0, 1),)
    assert (talker.id, talker.model_stage, talker.execution) == (0, "qwen3_tts", ExecutionType.LLM_AR)
    assert talker.owns_tokenizer
    assert talker.engine_output_type == "latent"
    assert talker.sampling_constraints == {"detokenize": False, "stop_token_ids": [2150]}
    assert (decoder.id, decoder.model_stage, decoder.execution) == (1, "code2wav", ExecutionType.LLM_GENERATION)
    assert decoder.final_output
    assert decoder.final_output_type == "audio"
    assert decoder.requires_full_payload_input
    assert decoder.model_arch == "Qwen3TTSCode2Wav"
    assert decoder.tts_args == {"max_instructions_length": 500}
    assert [str(kind) for kind in ExecutionType] == ["llm_ar", "llm_generation", "diffusion"]


def test_hooks_follow_async_chunk():
    found = get_pipeline("qwen3_tts")
    names = [tuple(h and h.rpartition(":")[2] for h in found.hooks(0, 1, async_chunk=mode)) for mode in (True, False)]
    assert names == [
        ("talker2code2wav_async_chunk", None),
        ("talker2code2wav_full_payload", "talker2code2wav_token_only"),
    ]


def test_stage_lookup_names_the_ids():
    with pytest.raises(ConfigError, match="Valid choices: 0, 1"):
        get_pipeline("qwen3_tts").stage(2)


def test_processors_are_imported_on_use():
    assert resolve_processor("math:sqrt")(9) == 3
    with pytest.raises(ConfigError, match="not something to call"):
        resolve_processor("math:pi")
    with pytest.raises(ConfigError, match="nowhere:x"):
        resolve_processor("nowhere:x")


@pytest.fixture
def registered():
    added = []

    def register(item, model_type=None):
        register_pipeline(item, model_type)
        added.append(model_type or item.model_type)

    yield register
    for name in added:
        unregister_pipeline(name)


def test_register_and_overwrite(registered, caplog):
    first, second = pipeline(ENTRY, LAST), pipeline(ENTRY, LAST, model_arch="Second")
    registered(first)
    assert "toy" in pipelines()
    assert caplog.text == ""
    registered(second)
    assert "'toy' is registered again" in caplog.text
    assert get_pipeline("toy") is second


def test_unknown_pipeline_names_the_known_ones():
    with pytest.raises(ConfigError, match=r"Did you mean 'qwen3_tts'.*Valid choices: .*qwen3_tts"):
        get_pipeline("qwen_tts")


def test_resolvers_see_the_config(registered):
    small = pipeline(ENTRY, LAST, model_type="pick")
    with pytest.raises(ConfigError, match="model_type to register"):
        register_pipeline(lambda config: small)
    registered(lambda config: small if (config or {}).get("size") == "small" else None, "pick")
    assert get_pipeline("pick", {"size": "small"}) is small
    with pytest.raises(ConfigError, match="does not select"):
        get_pipeline("pick")


def test_resolution_order(registered):
    for name in ("toy", "toy_long", "by_class", "by_arch"):
        registered(
            pipeline(
                ENTRY,
                LAST,
                model_type=name,
                diffusers_class_names=("ToyPipeline",) if name == "by_class" else (),
                hf_architectures=("ToyModel",) if name == "by_arch" else (),
                hf_config_predicate=(lambda config: config.get("version") == 2) if name == "by_arch" else None,
            )
        )
    everything = {"hf_config": {"model_type": "toy"}, "model_index": {"_class_name": "ToyPipeline"}, "path": "/m/Toy-Long-1B"}
    assert resolve_pipeline(deploy_pipeline="qwen3_tts", **everything).model_type == "qwen3_tts"
    assert resolve_pipeline(**everything).model_type == "toy"
    assert resolve_pipeline(**{**everything, "hf_config": {"architecture": "toy"}}).model_type == "toy"
    assert resolve_pipeline(**{**everything, "hf_config": {}}).model_type == "by_class"
    assert resolve_pipeline(path=everything["path"]).model_type == "toy_long"
    generic = {"model_type": "qwen2", "architectures": ["ToyModel"], "version": 2}
    assert resolve_pipeline(hf_config=generic, path="/m/toy").model_type == "by_arch"
    with pytest.raises(ConfigError, match="Unknown model type 'qwen2'"):
        resolve_pipeline(hf_config={**generic, "version": 1}, path="/m/toy")
    with pytest.raises(ConfigError, match="/toy/other"):
        resolve_pipeline(path="/toy/other")


def test_checkpoints_of_qwen3_tts_resolve():
    assert resolve_pipeline(hf_config={"model_type": "qwen3_tts"}).model_type == "qwen3_tts"
    assert resolve_pipeline(path="models/Qwen3-TTS-12Hz-0.6B-CustomVoice").model_type == "qwen3_tts"
    assert resolve_pipeline(hf_config={"architectures": ["Qwen3TTSForConditionalGeneration"]}).model_type == "qwen3_tts"


def test_the_qwen3_tts_hooks_exist():
    found = get_pipeline("qwen3_tts")
    for mode in (True, False):
        for name in found.hooks(0, 1, async_chunk=mode):
            assert name is None or resolve_processor(name).__name__ == name.partition(":")[2]
