"""The example of docs/models.md runs and the figures in it hold."""

import re
from pathlib import Path

from ouzel.models.qwen3_tts.budget import LEAST, PER_TOKEN
from ouzel.models.qwen3_tts.random_config import SIZES
from ouzel.models.qwen3_tts.tensors import STACKED

TEXT = (Path(__file__).parent.parent / "docs" / "models.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL):
        exec(compile(block, "docs/models.md", "exec"), {})
    assert "VoiceDesign 1920" in capsys.readouterr().out


def test_figures_are_current():
    assert f"`max({LEAST}, {PER_TOKEN} x text tokens)`" in TEXT
    assert re.findall(r"^\| ([a-z0-9.]+) \| [\d.]+ [MG]B \|", TEXT, re.MULTILINE) == list(SIZES)
    for fused, parts in STACKED.items():
        listed = ", ".join(f"`{part.split('.')[1]}`" for part in parts)
        assert f"| `{fused}` | {listed} |" in TEXT
