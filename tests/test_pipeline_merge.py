"""Merge rules as pure functions (contract 1.4), and sampling as a talker takes it (contract 5.4)."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouzel.adapters import SubtalkerSampling, TalkerSampling
from ouzel.errors import ConfigError
from ouzel.pipeline import load_deploy, merge
from ouzel.pipeline.sampling import talker_sampling

leaves = st.one_of(st.integers(0, 9), st.booleans(), st.text("ab", max_size=2))
trees = st.dictionaries(
    st.sampled_from("abc"), st.recursive(leaves, lambda t: st.dictionaries(st.sampled_from("xyz"), t)), max_size=3
)


@given(trees, trees)
def test_deep_merge_keeps_what_is_not_overlaid(base, over):
    before = copy.deepcopy((base, over))
    merged = merge.deep(base, over)
    assert (base, over) == before
    assert set(merged) == {*base, *over}
    for key, value in merged.items():
        if key not in over:
            assert value == base[key]
        elif isinstance(over[key], dict) and isinstance(base.get(key), dict):
            assert value == merge.deep(base[key], over[key])
        else:
            assert value == over[key]


@given(trees, trees, trees)
def test_deep_merge_is_associative_where_types_agree(a, b, c):
    def dicts(t):
        return {k: v for k, v in t.items() if isinstance(v, dict) and all(not isinstance(x, dict) for x in v.values())}

    a, b, c = dicts(a), dicts(b), dicts(c)
    assert merge.deep(merge.deep(a, b), c) == merge.deep(a, merge.deep(b, c))


@pytest.mark.parametrize(("base", "over"), [({"a": {"b": 1}}, {"a": 2}), ({"a": 2}, {"a": {"b": 1}})])
def test_a_mapping_that_meets_something_else_is_replaced_with_a_warning(base, over, caplog):
    assert merge.deep(base, over) == over
    assert "replaces" in caplog.text


@pytest.mark.parametrize("key", merge.DEEP_STAGE_KEYS)
def test_dict_fields_of_a_stage_merge(key):
    assert merge.stage({key: {"a": 1, "b": 2}, "x": 1}, {key: {"b": 3}}) == {key: {"a": 1, "b": 3}, "x": 1}


@pytest.mark.parametrize("key", ["env", "output_connectors", "compilation_config", "runtime"])
def test_other_fields_of_a_stage_are_replaced(key):
    assert merge.stage({key: {"a": 1, "b": 2}}, {key: {"b": 3}}) == {key: {"b": 3}}


def test_stages_merge_by_id_in_the_bases_order():
    merged = merge.stages([{"stage_id": 1, "x": 1}, {"stage_id": 0}], [{"stage_id": 2}, {"stage_id": 1, "y": 2}])
    assert merged == [{"stage_id": 1, "x": 1, "y": 2}, {"stage_id": 0}, {"stage_id": 2}]


def test_documents_merge_scalars_connectors_stages_and_platforms():
    base = {
        "async_chunk": True,
        "model_runner": "v1",
        "connectors": {"c": {"name": "n", "extra": {"a": 1, "b": 2}}},
        "platforms": {"npu": {"model_runner": "v1", "stages": [{"stage_id": 0, "x": 1}]}, "cpu": {"stages": []}},
        "playback": {"schedule": "auto", "gate": False},
        "edges": [1],
    }
    over = {
        "async_chunk": False,
        "connectors": {"c": {"extra": {"b": 3}}, "d": {"name": "m"}},
        "platforms": {"npu": {"stages": [{"stage_id": 0, "y": 2}]}},
        "playback": {"gate": True},
        "edges": [2],
    }
    assert merge.documents(base, over) == {
        "async_chunk": False,
        "model_runner": "v1",
        "connectors": {"c": {"name": "n", "extra": {"a": 1, "b": 3}}, "d": {"name": "m"}},
        "platforms": {"npu": {"model_runner": "v1", "stages": [{"stage_id": 0, "x": 1, "y": 2}]}, "cpu": {"stages": []}},
        "playback": {"schedule": "auto", "gate": True},
        "edges": [2],
        "stages": [],
    }


def test_nested_layout_becomes_flat():
    nested = {"stage_id": 0, "max_num_seqs": 1, "devices": "0", "engine_args": {"max_num_seqs": 2}, "runtime": {"devices": "1"}}
    assert merge.flat_stage(nested) == {"stage_id": 0, "max_num_seqs": 2, "devices": "1"}
    assert merge.flat_stage({"stage_id": 0, "dtype": "a", "engine_extras": {"dtype": "b"}})["dtype"] == "b"


def test_platform_entries_merge_and_name_what_they_ignore(caplog):
    block = {"stage_id": 0, "default_sampling_params": {"top_k": 1, "top_p": 1.0}, "env": {"A": "1"}, "max_num_seqs": 3}
    flat = {"stage_id": 0, "default_sampling_params": {"top_k": 2}, "env": {"B": "2"}, "new": 1}
    assert merge.platform_stage(block, flat) == {
        "stage_id": 0,
        "default_sampling_params": {"top_k": 2, "top_p": 1.0},
        "env": {"A": "1", "B": "2"},
        "max_num_seqs": 3,
        "new": 1,
    }
    assert caplog.text == ""
    nested = {"stage_id": 0, "engine_args": {"max_num_seqs": 1}, "default_sampling_params": {"top_k": 9}}
    assert merge.platform_stage(block, nested) == {**block, "max_num_seqs": 1}
    assert "ignored beside engine_args: default_sampling_params" in caplog.text


def test_order_of_precedence(tmp_path):
    from ouzel.pipeline import Overrides

    (tmp_path / "base.yaml").write_text("stages: [{stage_id: 0, max_num_seqs: 1, max_model_len: 1, silence_ban_frames: 1}]")
    (tmp_path / "top.yaml").write_text(
        "base_config: base.yaml\nstages: [{stage_id: 0, max_num_seqs: 2, max_model_len: 2}]\n"
        "platforms: {cpu: {stages: [{stage_id: 0, max_num_seqs: 3}]}}"
    )

    def values(**options):
        stage = load_deploy(tmp_path / "top.yaml", **options).stage(0)
        return stage.silence_ban_frames, stage.max_model_len, stage.max_num_seqs

    assert values(platform="cuda") == (1, 2, 2)
    assert values(platform="CPU") == (1, 2, 3)
    assert values(overrides=Overrides(stages={0: {"max_num_seqs": 4}})) == (1, 2, 4)


@pytest.mark.parametrize(
    ("params", "constraints", "expected"),
    [
        (None, {"stop_token_ids": [2150]}, {"stop_token_ids": [2150]}),
        ({"stop_token_ids": [7, 2150, 9, 7]}, {"stop_token_ids": [2150, 3]}, {"stop_token_ids": [7, 2150, 9, 3]}),
        ({"stop_token_ids": []}, {"stop_token_ids": [2150]}, {"stop_token_ids": [2150]}),
        ({"detokenize": True, "top_k": 4}, {"detokenize": False}, {"detokenize": False, "top_k": 4}),
        ({"stop_token_ids": [1]}, {}, {"stop_token_ids": [1]}),
    ],
)
def test_sampling_constraints_win_and_stop_ids_are_unioned(params, constraints, expected):
    assert merge.sampling(params, constraints) == expected


def test_a_file_can_add_stop_ids_but_not_drop_the_end_of_speech(tmp_path):
    (tmp_path / "d.yaml").write_text("stages: [{stage_id: 0, default_sampling_params: {stop_token_ids: [5]}}]")
    assert load_deploy(tmp_path / "d.yaml").talker_sampling().stop_token_ids == (5, 2150)


def test_talker_sampling_is_typed_and_complete():
    found = talker_sampling(
        "f",
        {"temperature": 0, "top_k": -1, "top_p": 0.5, "repetition_penalty": 1, "min_tokens": 9, "max_tokens": 7, "seed": 3},
        {"do_sample": False, "top_k": 0, "temperature": 0.5},
    )
    assert found == TalkerSampling(
        temperature=0.0,
        top_k=0,
        top_p=0.5,
        repetition_penalty=1.0,
        min_tokens=7,
        max_tokens=7,
        seed=3,
        subtalker=SubtalkerSampling(do_sample=False, temperature=0.5, top_k=0),
    )
    assert talker_sampling("f", {}, {}) == TalkerSampling()
    with pytest.raises(ConfigError, match=r"f: default_sampling_params\.seed must be a whole number"):
        talker_sampling("f", {"seed": "x"}, {})
