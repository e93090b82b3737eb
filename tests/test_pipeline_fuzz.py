"""Whatever a deploy file or a command line holds, the answer is a config or an error for the user, never a traceback."""

import logging

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ouzel.errors import OuzelError
from ouzel.pipeline import load_deploy, parse_overrides
from ouzel.pipeline.connector import CODEC_KEYS, CONNECTOR_CLASSES
from ouzel.pipeline.notices import USED_TOP_KEYS
from ouzel.pipeline.stage import USED_STAGE_KEYS

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 30),
    st.just(10**400),
    st.floats(),
    st.sampled_from(["", "c", "auto", "ramp", "4,8", "qwen3_tts", "to_stage_1", "0", "${x}", *CONNECTOR_CLASSES[:2]]),
)
keys = st.one_of(
    st.sampled_from(
        [
            *USED_TOP_KEYS,
            *USED_STAGE_KEYS,
            *CODEC_KEYS,
            "runtime",
            "engine_args",
            "name",
            "extra",
            "threads",
            "to_stage_1",
            "c",
            "cpu",
        ]
    ),
    st.integers(-1, 2),
    st.none(),
)
values = st.recursive(scalars, lambda v: st.one_of(st.lists(v, max_size=3), st.dictionaries(keys, v, max_size=4)), max_leaves=8)
stages = st.lists(
    st.dictionaries(st.sampled_from([*USED_STAGE_KEYS, "engine_args", "runtime", "engine_extras"]), values, max_size=4).map(
        lambda block: {"stage_id": 0, **block}
    ),
    max_size=2,
)
connectors = st.fixed_dictionaries(
    {
        "c": st.fixed_dictionaries(
            {"name": st.sampled_from(CONNECTOR_CLASSES), "extra": st.dictionaries(st.sampled_from(CODEC_KEYS), values)}
        )
    }
)
documents = st.one_of(
    values,
    st.dictionaries(st.sampled_from(USED_TOP_KEYS[1:]), values, max_size=4),
    st.fixed_dictionaries(
        {"stages": stages}, optional={"connectors": connectors, "playback": values, "edge": values, "platforms": values}
    ),
)


@pytest.fixture(scope="module")
def document_path(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "d.yaml"


@settings(max_examples=120)
@given(documents)
def test_any_document(document_path, document):
    logging.disable(logging.CRITICAL)
    path = document_path
    try:
        path.write_text(yaml.safe_dump(document))
        deploy = load_deploy(path)
    except OuzelError:
        pass
    else:
        assert [stage.stage_id for stage in deploy.stages] == [0, 1]
        assert deploy.talker_sampling().stop_token_ids[-1:]
        assert deploy.schedule in ("fixed", "ramp", "adaptive", "auto", "full")
    finally:
        logging.disable(logging.NOTSET)


flags = st.sampled_from(
    ["--async-chunk", "--deploy-config", "--stage-overrides", "--stage-0-edge", "--stage_1_max_num_seqs", "--stage-0-x"]
)
words = st.one_of(
    flags, st.sampled_from(['{"0": {"edge": {"threads": 1}}}', '{"0": 1}', "[", "{a: 1}", "4", "", "=", "&a [*a]"]), st.text()
)


@settings(max_examples=120)
@given(st.lists(words, max_size=6))
def test_any_command_line(arguments):
    try:
        found = parse_overrides(arguments)
        load_deploy("qwen3_tts", overrides=found)
    except OuzelError:
        pass
