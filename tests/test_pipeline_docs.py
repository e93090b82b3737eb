"""The examples of docs/deploy.md work, and its tables name every key."""

import re
from pathlib import Path

import pytest

from ouzel.pipeline import Overrides, load_deploy, parse_overrides
from ouzel.pipeline.connector import CODEC_KEYS
from ouzel.pipeline.edge import EDGE_KEYS, PLAYBACK_KEYS, SCHEDULES
from ouzel.pipeline.source import DEPLOY_DIR
from ouzel.pipeline.stage import USED_STAGE_KEYS

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "deploy.md").read_text()
BLOCKS = dict(enumerate(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)))


@pytest.mark.parametrize("number", BLOCKS)
def test_yaml_examples_load(tmp_path, number):
    (tmp_path / "qwen3_tts.yaml").write_text((DEPLOY_DIR / "qwen3_tts.yaml").read_text())
    (tmp_path / "device.yaml").write_text(BLOCKS[number])
    assert load_deploy(tmp_path / "device.yaml").stage(0).edge.threads in (2, 4)


def test_python_example():
    code = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL).group(1)
    scope = {}
    exec(code, scope)
    lines = [line.partition("#") for line in code.splitlines() if line.startswith("deploy.")]
    assert len(lines) == 4
    for expression, _, expected in lines:
        assert eval(expression, scope) == eval(expected), expression


def test_tables_name_every_key():
    for key in (*CODEC_KEYS, *EDGE_KEYS, *PLAYBACK_KEYS, *USED_STAGE_KEYS):
        assert key in PAGE, key
    for choice in SCHEDULES:
        assert choice in PAGE


def test_command_line_examples():
    assert "--stage-0-max-num-seqs 4" in PAGE
    assert "--stage-1-edge-threads 2" in PAGE
    found = parse_overrides(["--stage-0-max-num-seqs", "4", "--stage-1-edge-threads", "2"])
    assert found == Overrides(stages={0: {"max_num_seqs": 4}, 1: {"edge": {"threads": 2}}})
