from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
import wave
from pathlib import Path

import pytest

from cli_run import environment, error_of, made, ouzel, start

TEXT = "Good morning to you."
# One chunk size throughout: with another partition the last bit of a sample may differ.
SHORT = ("--seed", "1", "--max-new-tokens", "12", "--schedule", "fixed:4/4", "-q")
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
from ouzel.cli.main import main
sys.exit(main())
"""
FRAME_BYTES = 1920 * 2


@pytest.fixture
def home(tmp_path, tiny_bundle) -> Path:
    """A home whose only model is the tiny bundle."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "tiny").symlink_to(tiny_bundle)
    return tmp_path


def samples(path: Path) -> bytes:
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24000, 1, 2)
        return file.readframes(file.getnframes())


def test_a_file_a_pipe_and_pcm_hold_the_same_samples(home):
    done = ouzel("say", TEXT, "-o", "a.wav", *SHORT, home=home)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert made(home) == ["a.wav"]
    expected = samples(home / "a.wav")
    assert len(expected) == 11 * FRAME_BYTES  # the last of the 12 ids makes no frame
    piped = ouzel("say", "-", "-o", "-", *SHORT, home=home, stdin=TEXT.encode())
    assert piped.stdout[:4] == b"RIFF"
    assert piped.stdout[40:44] == b"\xff\xff\xff\xff"
    assert piped.stdout[44:] == expected
    raw = ouzel("say", *TEXT.split(), "-o", "-", "--format", "pcm", *SHORT, home=home)
    assert raw.stdout == expected
    ouzel("say", TEXT, "-o", "b.raw", *SHORT, home=home)
    assert (home / "b.raw").read_bytes() == expected


def test_redirected_standard_output_gets_true_sizes(home):
    with (home / "out.wav").open("wb") as file:
        command = [sys.executable, "-m", "ouzel", "say", TEXT, "-o", "-", *SHORT]
        subprocess.run(command, stdout=file, env=environment(home), cwd=home, timeout=300, check=True)
    assert len(samples(home / "out.wav")) == 11 * FRAME_BYTES


def test_statistics_go_to_stderr(home):
    done = ouzel("say", "--stats", "json", TEXT, "-o", "-", "--format", "pcm", *SHORT, home=home)
    figures = json.loads(done.stderr)
    assert (figures["model"], figures["seed"], figures["frames"], figures["finish_reason"]) == ("bundle", 1, 11, "length")
    assert len(done.stdout) == figures["samples"] * 2
    shown = ouzel("say", "--stats", TEXT, "-o", "x.wav", *SHORT, "--threads", "1", home=home).stderr.decode()
    for label in ("finish reason", "real-time factor", "first audio after", "gap-free playback after", "late chunks"):
        assert label in shown


def test_a_cut_text_is_said_unless_quiet(home):
    done = ouzel("say", TEXT, "-o", "a.wav", *SHORT[:-1], home=home)
    assert done.returncode == 0
    assert "cut off at the limit of frames" in done.stderr.decode()


def test_ctrl_c_leaves_no_file(home):
    process = start("say", TEXT * 40, "-o", "a.wav", "--max-new-tokens", "4000", home=home)
    try:
        while process.poll() is None and not made(home):  # the temporary file is there: speech is being made
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert (out, err) == (b"", b"ouzel: error: interrupted.\n")
    assert made(home) == []


def test_sigterm_leaves_no_file(home):
    process = start("say", TEXT * 40, "-o", "a.wav", "--max-new-tokens", "4000", home=home)
    try:
        while process.poll() is None and not made(home):
            time.sleep(0.02)
        process.terminate()
        _, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 143, err
    assert made(home) == []


def test_a_closed_pipe_ends_it_with_one_sentence(home):
    process = start("say", TEXT * 40, "-o", "-", "--max-new-tokens", "4000", home=home)
    try:
        assert process.stdout is not None
        assert process.stdout.read(1000)[:4] == b"RIFF"
        process.stdout.close()
        assert process.stderr is not None
        err = process.stderr.read()
        assert process.wait(300) == 1
    finally:
        process.kill()
    assert err == b"ouzel: error: the program that reads the output has closed the pipe.\n"


def test_a_full_disk_leaves_no_file(home):
    """A real limit on the size of files stands for the disk."""
    command = [sys.executable, "-c", LIMITED, "say", TEXT, "-o", "a.wav", *SHORT]
    done = subprocess.run(command, capture_output=True, env=environment(home), cwd=home, timeout=300, check=False)
    assert error_of(done, 1) == "Writing a.wav failed: no room is left there; nothing was kept."
    assert made(home) == []


def test_devices_and_links_are_not_replaced(home):
    os.mkfifo(home / "pipe")
    reader = subprocess.Popen(["cat", home / "pipe"], stdout=subprocess.PIPE)
    try:
        done = ouzel("say", TEXT, "-o", "pipe", "--format", "pcm", *SHORT, home=home)
        assert done.returncode == 0, done.stderr
        assert len(reader.communicate(timeout=300)[0]) == 11 * FRAME_BYTES
    finally:
        reader.kill()
        reader.communicate()
    assert stat.S_ISFIFO((home / "pipe").stat().st_mode)
    (home / "link.wav").symlink_to("target.wav")
    assert ouzel("say", TEXT, "-o", "link.wav", *SHORT, home=home).returncode == 0
    assert (home / "link.wav").is_symlink()
    assert len(samples(home / "target.wav")) == 11 * FRAME_BYTES
    assert ouzel("say", TEXT, "-o", "/dev/null", *SHORT, home=home).returncode == 0
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
