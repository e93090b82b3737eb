"""Every command that the README and the documentation show is run here, in order, as a new user would type it.

The hub is a local server that serves a random nano checkpoint under the published names; slow benchmarks get the smallest shape.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from cli_run import environment, until_ready
from conftest import cached_checkpoint
from hub_server import hub_server
from ouzel.audio.wav import wav_bytes

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
COMMAND = re.compile(r"^(?:    )?((?:ouzel |make |pip |python -m ouzel|tools/).*)$", re.MULTILINE)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EMPTY_STORE = ("README.md", "voice.md")  # these begin with what comes with ouzel
NEEDS = {"runtime-executorch.md": "executorch"}  # a package that the tests' venv lacks: make test-executorch
SMALLEST = {
    "ouzel.bench": ["--size", "nano", "--weights", "fp32", "--frames", "4", "--repeats", "1"],
    "ouzel.bench.runtimes": ["--size", "nano", "--seconds", "0.01"],
    "tune": ["--seconds", "0.01", "--threads", "1", "--frames", "4"],
    "executorch": ["--weights", "fp32"],
}


def commands(page: Path) -> list[str]:
    """Lines of code blocks that begin with a command of ours, without their comments."""
    text = page.read_text(encoding="utf-8")
    if page.name == "cli.md":  # help texts, held fresh by test_cli_help
        text = re.sub(r"<!-- help: \w+ -->\n```\n.*?```\n", "", text, flags=re.DOTALL)
    blocks = re.findall(r"^```(?:sh|console|text)?\n(.*?)^```|((?:^    .*\n)+)", text, re.MULTILINE | re.DOTALL)
    lines = [line for fenced, indented in blocks for line in (fenced or indented).splitlines()]
    return [m[1] for line in lines if (m := COMMAND.match(line))]


SHOWN = [(page.name, command) for page in PAGES for command in commands(page)]


def test_commands_are_found():
    assert ("README.md", "make test     # sets up and runs all tests") in SHOWN
    assert len(SHOWN) >= 10


@pytest.mark.parametrize(("page", "command"), [s for s in SHOWN if s[1].startswith(("make", "tools/"))])
def test_make_target_exists(page: str, command: str):
    words = shlex.split(command, comments=True)
    if words[0] == "make":
        subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, check=True, capture_output=True)
    else:
        assert (ROOT / words[0]).stat().st_mode & 0o111, f"{words[0]} is not executable"


@pytest.mark.parametrize(("page", "command"), [s for s in SHOWN if s[1].startswith("pip")])
def test_pip_names_extras_that_exist(page: str, command: str):
    for extras in re.findall(r"(?:\bouzel|\.)\[([\w,-]+)\]", command):
        assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])


@pytest.fixture(scope="module")
def hub(nano_checkpoint):
    with hub_server() as state:
        for kind, repo in (
            ("custom_voice", "Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice"),
            ("base", "Qwen/Qwen3-TTS-12Hz-0.6B-Base"),
            ("voice_design", "Qwen/Qwen3-TTS-12Hz-1.7B-VoiceDesign"),
        ):
            encoders = kind == "base"
            state.add_folder(repo, cached_checkpoint("nano", kind, encoders=True) if encoders else nano_checkpoint(kind))
        yield state


@pytest.mark.parametrize("page", sorted({name for name, c in SHOWN if c.startswith(("ouzel", "python"))}))
def test_the_commands_of_a_page_run(page: str, tmp_path: Path, hub, nano_checkpoint, tiny_bundle):
    if page in NEEDS:
        pytest.importorskip(NEEDS[page])
    home = tmp_path / "home"
    shutil.copytree(nano_checkpoint("custom_voice"), home / "checkpoints" / "my-finetune")
    shutil.copytree(nano_checkpoint("custom_voice"), tmp_path / "CHECKPOINT_FOLDER")
    if page not in EMPTY_STORE:
        shutil.copytree(tiny_bundle, home / "models" / "default")
    (tmp_path / "chapter.txt").write_text("It was late. Nobody spoke.", encoding="utf-8")
    (tmp_path / "my-voice.wav").write_bytes(wav_bytes(np.random.default_rng(0).uniform(-0.3, 0.3, 30_000), 24_000))
    shutil.copy(ROOT / "service" / "serve.yaml", tmp_path)
    env = environment(home, {"HOME": str(home), "HF_ENDPOINT": hub.url, "PATH": "/usr/bin:/bin"})
    for command in (c for name, c in SHOWN if name == page and c.startswith(("ouzel", "python"))):
        words = shlex.split(command, comments=True)
        words = [str(home / w[2:]) if w.startswith("~/") else w for w in words]
        words[0:1] = [sys.executable, "-m", "ouzel"] if words[0] == "ouzel" else [sys.executable]
        words += next((more for name, more in SMALLEST.items() if name in words), [])
        if words[:4] == [sys.executable, "-m", "ouzel", "serve"]:
            serve(words, tmp_path, env)
            continue
        line = shlex.join(words).replace(" '|' ", " | ").replace(" '>' ", " > ").replace(" '<' ", " < ")
        limit = 1800 if page in NEEDS else 300  # lowering is slow
        done = subprocess.run(line, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=limit, check=False)
        assert done.returncode == 0, f"{page}: {command}\n{done.stderr[-2000:]}"


def serve(words: list[str], folder: Path, env: dict[str, str]) -> None:
    """A server comes up on free ports, says that it is ready, and ends when it is told to."""
    words = ["tcp://127.0.0.1:0" if word.startswith("tcp://") else word for word in words]
    process = subprocess.Popen([*words, "--port", "0"], cwd=folder, env=env, stderr=subprocess.PIPE, text=True)
    try:
        until_ready(process)
    finally:
        process.terminate()
    assert process.wait(60) == 0


def test_the_readme_speaks_from_python(tmp_path: Path):
    snippets = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert snippets
    for snippet in snippets:
        subprocess.run([sys.executable, "-c", snippet], cwd=tmp_path, env=environment(tmp_path), check=True, timeout=300)
    assert (tmp_path / "again.wav").stat().st_size > 44
