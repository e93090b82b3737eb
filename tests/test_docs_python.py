"""Every snippet of docs/python.md runs as it stands, on a toy voice."""

import re
import sys
from pathlib import Path

import pytest

import ouzel
from ouzel.api import Voice
from ouzel.audio.sinks import PipeSink
from ouzel.engine import Engine
from toys import ToyDecoder, ToyFrontend, ToyTalker

PAGE = Path(__file__).parent.parent / "docs" / "python.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def to_nobody(ring, sample_rate):
    return PipeSink(ring, sample_rate, [sys.executable, "-S", "-c", "import sys; sys.stdin.buffer.read()"])


def test_there_are_snippets():
    assert len(SNIPPETS) >= 5


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_snippet_runs(snippet, monkeypatch, tmp_path):
    player = ouzel.Player
    monkeypatch.setattr(ouzel, "load", lambda: Voice(Engine(ToyTalker(), ToyDecoder()), ToyFrontend()), raising=False)
    monkeypatch.setattr(ouzel, "Player", lambda **options: player(open_sink=to_nobody, **options), raising=False)
    monkeypatch.chdir(tmp_path)
    exec(compile(snippet, str(PAGE), "exec"), {"__name__": "snippet"})
