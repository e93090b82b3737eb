"""What a shell, a user or a container may hand to the command line beside arguments: closed streams, odd names, no home."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from cli_run import environment, made
from ouzel.cli.main import main

LONG = "a" * 300


def closed(arguments: str, home, env=None) -> subprocess.CompletedProcess[str]:
    """`ouzel ARGUMENTS` as a shell runs it, redirections included."""
    return subprocess.run(
        f"exec {sys.executable} -m ouzel {arguments}",
        shell=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment(home, env),
        cwd=home,
    )


@pytest.mark.parametrize(
    ("arguments", "code", "out", "err"),
    [
        ("models --json >&-", 1, "", "ouzel: error: reading or writing failed: Bad file descriptor.\n"),
        ("models --json >/dev/full", 1, "", "ouzel: error: reading or writing failed: No space left on device.\n"),
        ("say '' -o a.wav 2>&-", 2, "", ""),
        ("say - -o a.wav <&-", 2, "", "Standard input cannot be read (Bad file descriptor); give the text as an argument.\n"),
        ("voices -m x <&- >&- 2>&-", 2, "", ""),
    ],
)
def test_a_closed_stream_is_no_traceback_and_sends_no_message_elsewhere(tmp_path, arguments, code, out, err):
    done = closed(arguments, tmp_path)
    assert (done.returncode, done.stdout) == (code, out)
    assert done.stderr.endswith(err)
    assert len(done.stderr.splitlines()) == (1 if err else 0)


def test_say_writes_its_file_with_all_streams_closed(tmp_path, tiny_bundle):
    done = closed(f"say Hi -m {tiny_bundle} -o a.wav --max-new-tokens 3 --seed 1 --stats <&- >&- 2>&-", tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "a.wav").read_bytes()[:4] == b"RIFF"


def test_help_in_an_encoding_without_its_characters(tmp_path):
    done = closed("help say", tmp_path, {"PYTHONIOENCODING": "ascii:strict"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "ramp:N,N,\\u2026" in done.stdout


def test_a_name_that_is_not_utf8_is_printed_as_it_is(tmp_path):
    (tmp_path / "models").mkdir()
    folder = os.fsencode(tmp_path / "models") + b"/\xff"
    os.mkdir(folder)
    with open(folder + b"/manifest.json", "w") as file:
        file.write("{")
    done = subprocess.run(
        [sys.executable, "-m", "ouzel", "models"], capture_output=True, check=False, env=environment(tmp_path), cwd=tmp_path
    )
    assert done.returncode == 2
    assert b"/models/\xff\n" in done.stdout
    assert b"Traceback" not in done.stderr


def test_help_is_a_command_too(capsys):
    for words, usage in (["help"], "usage: ouzel [-h]"), (["help", "say"], "usage: ouzel say"):
        with pytest.raises(SystemExit) as end:
            main(words)
        assert end.value.code == 0
        assert capsys.readouterr().out.startswith(usage)


@pytest.mark.parametrize(
    "arguments",
    [
        ["say", "Hi", "-o", f"{LONG}.wav"],
        ["say", "Hi", "-o", ""],
        ["say", "Hi", "-o", "a.wav", "-m", LONG],
        ["voices", "-m", f"/{LONG}/x"],
        ["voices", "-m", "~nosuchuser/x"],
        ["convert", LONG, "out"],
        ["convert", "~nosuchuser/x", "out"],
        ["say", "Hi", "-o", "a.wav", "--stage-overrides", "[" * 100_000],
    ],
)
def test_names_that_no_system_takes(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.setenv("OUZEL_HOME", str(tmp_path))
    monkeypatch.delenv("OUZEL_MODEL", raising=False)
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("ouzel: error: ")
    assert made(tmp_path) == []


def test_a_user_without_a_home(tmp_path, monkeypatch, capsys, tiny_bundle):
    """Containers run as numbers that the password file does not know."""
    for name in ("OUZEL_HOME", "OUZEL_MODEL", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # what it does when nothing is known
    assert main(["models"]) == 2
    assert (
        capsys.readouterr().err
        == "ouzel: error: This user has no home folder; set OUZEL_HOME to a folder for models and downloads.\n"
    )
    assert main(["say", "Hi", "-m", str(tiny_bundle), "-o", str(tmp_path / "a.wav"), "--max-new-tokens", "3", "-q"]) == 0


@pytest.mark.parametrize("option", ["--threads", "--stage-1-edge_threads"])
def test_absurd_numbers_of_threads_are_refused_before_the_machine_goes_down(tmp_path, capsys, tiny_bundle, option):
    assert main(["say", "Hi", "-m", str(tiny_bundle), "-o", str(tmp_path / "a.wav"), option, "1000000"]) == 2
    assert capsys.readouterr().err == "ouzel: error: The number of threads must be at most 1024, not 1000000.\n"
