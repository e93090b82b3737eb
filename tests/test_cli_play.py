"""`ouzel say --play` with a program in the place of a loudspeaker."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from cli_run import made, ouzel, start

TEXT = "Good morning to you."
SHORT = ("--seed", "1", "--max-new-tokens", "12", "--schedule", "fixed:4/4")
# Keeps what it is told to play; a loudspeaker would take its time.
APLAY = '#!/bin/sh\necho "$@" > arguments\nexec cat > played\n'
BROKEN = "#!/bin/sh\nexit 1\n"


@pytest.fixture
def home(tmp_path, tiny_bundle) -> Path:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "tiny").symlink_to(tiny_bundle)
    (tmp_path / "bin").mkdir()
    return tmp_path


def path_with(home: Path, script: str) -> dict[str, str]:
    (home / "bin" / "aplay").write_text(script)
    (home / "bin" / "aplay").chmod(0o755)
    return {"PATH": f"{home / 'bin'}:/usr/bin:/bin"}


def test_without_an_output_it_plays(home):
    done = ouzel("say", TEXT, *SHORT, "-q", home=home, env=path_with(home, APLAY))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert made(home) == ["arguments", "bin", "played"]
    assert "24000" in (home / "arguments").read_text().split()
    assert len((home / "played").read_bytes()) == 11 * 1920 * 2


def test_it_plays_and_writes(home):
    done = ouzel("say", TEXT, "--play", "-o", "a.pcm", *SHORT, "-q", home=home, env=path_with(home, APLAY))
    assert done.returncode == 0, done.stderr
    assert (home / "a.pcm").read_bytes() == (home / "played").read_bytes()


def test_a_player_that_breaks_down_is_one_sentence_and_leaves_no_file(home):
    done = ouzel("say", TEXT * 5, "--play", "-o", "a.wav", *SHORT, "-q", home=home, env=path_with(home, BROKEN))
    text = done.stderr.decode()
    assert done.returncode == 1, text
    assert text.startswith("ouzel: error: The player ")
    assert text.count("\n") == 1
    assert made(home) == ["bin"]


def test_ctrl_c_silences_it(home):
    env = path_with(home, APLAY.replace("exec cat > played", "echo > begun; exec sleep 600"))
    process = start("say", TEXT * 40, "--play", "-o", "a.wav", home=home, env=env)
    try:
        while process.poll() is None and not (home / "begun").exists():
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)  # sooner than the player would end
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert err == b"ouzel: error: interrupted.\n"
    assert made(home) == ["arguments", "begun", "bin"]
