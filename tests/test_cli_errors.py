from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli_run import environment, error_of, ouzel
from ouzel.cli.main import main
from ouzel.cli.options import split_stage_options


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("OUZEL_HOME", str(tmp_path))
    monkeypatch.delenv("OUZEL_MODEL", raising=False)
    monkeypatch.setattr("ouzel.bundle.store.embedded_bundle", lambda: None)  # as in a build without a voice
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give a command: say, serve, voices, models, pull, convert, doctor, tune. See `ouzel --help`."),
        (["sya"], "invalid choice: 'sya' (choose from"),
        (["say"], "The following arguments are required: TEXT. See `ouzel say --help`."),
        (["say", "Hi", "--voise", "x"], "Unknown option '--voise'. Did you mean '--voice'? Valid choices: --help, --model, "),
        (["say", "Hi", "--voic", "x"], "Unknown option '--voic'. Did you mean '--voice'?"),
        (["say", "-o", "a.wav", "Hi", "-q", "there"], "Unexpected argument 'there'; quote a text that has spaces."),
        (["say", "Hi", "--format", "mp3"], "invalid choice: 'mp3' (choose from"),
        (["say", "Hi", "--seed", "x"], "Argument --seed: invalid int value: 'x'"),
        (["say", "Hi", "--threads", "-1"], "'-1' is not a whole number of at least 0"),
        (["say", "Hi", "--max-new-tokens", "0"], "'0' is not a whole number of at least 1"),
        (["say", "", "-o", "a.wav"], "The text is empty"),
        (["say", "Hi", "--temperature", "nan"], "temperature must be a number from 0 and at most 100, not nan"),
        (["say", "Hi", "-o", "speech.mp3"], "unknown kind of audio file '.mp3'; valid suffixes: .wav, .wave, .pcm, .raw"),
        (["say", "Hi", "-o", "none/speech.wav"], "there is no folder none"),
        (["say", "Hi", "-o", "."], "-o . is a folder; give a file name such as speech.wav"),
        (["say", "Hi", "-o", "a.wav"], "No model is installed in"),
        (["say", "Hi", "-o", "a.wav", "-m", "x"], "Unknown model 'x': there are no models in"),
        (["say", "Hi", "-o", "a.wav", "-m", ""], "The model is empty"),
        (["say", "Hi", "-o", "a.wav", "--stage-0-treads", "2"], "Unknown stage field 'treads'. Did you mean "),
        (["say", "Hi", "-o", "a.wav", "--stage-overrides", "{"], "--stage-overrides is not valid JSON"),
        (["models", "--stage-0-max_num_seqs", "2"], "Unknown option '--stage-0-max_num_seqs'. Valid choices: --help, --json"),
        (["models", "x"], "Unexpected argument 'x'"),
        (["voices", "-m", "/no/where"], "There is no folder /no/where"),
        (["convert", "/no/where", "out"], "/no/where is not a folder; `ouzel pull OWNER/NAME`"),
        (
            ["convert", ".", "out", "--weights", "int3"],
            "Unknown weights of onnxruntime 'int3'. Did you mean 'int8'? Valid choices: int4, int8, fp32.",
        ),
        (["convert", ".", "out", "--decoder", "int4"], "Unknown decoder weights of onnxruntime 'int4'. Did you mean"),
        (["convert", ".", "out", "--runtime", "onnxruntime,tflite"], "Unknown runtime 'tflite'."),
        (["pull", "nonsense"], "'nonsense' is not a repository name; write OWNER/NAME"),
        (["pull", "a/b", "--endpoint", "hub"], "The hub's address 'hub' must begin with http"),
        (["doctor", "-m", "x"], None),
    ],
)
def test_bad_arguments_are_one_sentence_with_code_2(home, capsys, arguments, message):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    if message is not None:
        assert out == ""
        assert err.startswith("ouzel: error: ")
        assert message in err
    assert len(err.strip().splitlines()) == 1
    assert [p.name for p in home.iterdir()] == []


def test_nothing_to_play_with_names_both_ways_out(home, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["say", "Hi"]) == 2
    assert "give -o FILE to write it, or install a player: pip install 'ouzel[play]'" in capsys.readouterr().err


def test_stdin_must_be_utf8(home):
    assert "is not UTF-8 (see byte 1)" in error_of(ouzel("say", "-", "-o", "a.wav", home=home, stdin=b"a\xff"))


def test_help_and_version(home, capsys):
    for arguments in (["--help"], ["say", "--help"], ["--version"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 0
    out, err = capsys.readouterr()
    assert "ouzel 0." in out
    assert err == ""


def test_audio_is_not_written_to_a_terminal(home):
    master, slave = os.openpty()
    try:
        command = [sys.executable, "-m", "ouzel", "say", "Hi", "-o", "-"]
        done = subprocess.run(
            command, stdout=slave, stderr=subprocess.PIPE, env=environment(home), cwd=home, timeout=300, check=False
        )
    finally:
        os.close(master)
        os.close(slave)
    assert done.returncode == 2
    assert b"would write audio to the terminal" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "others", "stages"),
    [
        (["say", "--stage-0-max_num_seqs", "4", "Hi"], ["say", "Hi"], ["--stage-0-max_num_seqs", "4"]),
        (["say", "Hi", "--stage_1_edge_threads=2"], ["say", "Hi"], ["--stage_1_edge_threads=2"]),
        (["say", "--", "--stage-0-x", "4"], ["say", "--", "--stage-0-x", "4"], []),
        (["say", "--stage-overrides", "{}"], ["say", "--stage-overrides", "{}"], []),
        (["say", "--stats", "Hi"], ["say", "--stats=table", "Hi"], []),
        (["say", "--stats", "json", "Hi"], ["say", "--stats", "json", "Hi"], []),
        (["say", "Hi", "--stats"], ["say", "Hi", "--stats=table"], []),
    ],
)
def test_stage_options_are_taken_out_with_their_values(arguments, others, stages):
    assert split_stage_options(arguments) == (others, stages)
