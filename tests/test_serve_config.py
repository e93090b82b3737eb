"""`ouzel serve --config`: every option by its name, and errors that say what would be valid."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

import pytest
import yaml

from ouzel.cli.main import build_parser
from ouzel.cli.options import natural_int, positive_int
from ouzel.cli.serve import settings_of
from ouzel.cli.settings_file import configured
from ouzel.errors import ConfigError
from ouzel.serve.keys import read_keys

EXAMPLE = Path(__file__).parents[1] / "service" / "serve.yaml"


def read(tmp_path: Path, text: str, *flags: str) -> argparse.Namespace:
    path = tmp_path / "serve.yaml"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return parsed("--config", str(path), *flags)


def parsed(*flags: str) -> argparse.Namespace:
    given = ["serve", *flags]
    args = build_parser().parse_args(given)
    args.given = given
    return configured(args)


def options() -> dict[str, argparse.Action]:
    return {a.dest: a for a in parsed().parser._actions if a.dest not in ("help", "config")}


def value_of(action: argparse.Action) -> tuple[object, object]:
    """(something else than the default, as YAML; what argparse would have made of the flag)"""
    if action.dest == "voice_alias":
        return {"alloy": "moss", "ash": "fern"}, ["alloy=moss", "ash=fern"]
    if action.dest == "stage_overrides":
        return {0: {"max_num_seqs": 4}}, '{"0": {"max_num_seqs": 4}}'
    if action.nargs == 0:
        return not action.default, not action.default
    if isinstance(action, argparse._AppendAction):
        return ["one", "two"], ["one", "two"]
    if action.type in (natural_int, positive_int):
        return 77, 77
    text = action.choices[-1] if action.choices else "/somewhere/a-name"
    return text, text if action.type is None else action.type(text)


@pytest.mark.parametrize("name", options())
def test_every_option_may_be_in_the_file(tmp_path, name):
    value, expected = value_of(options()[name])
    for spelling in (name, name.replace("_", "-")):
        assert getattr(read(tmp_path, yaml.safe_dump({spelling: value})), name) == expected
    assert getattr(read(tmp_path, f"{name}: null"), name) == getattr(parsed(), name)


def test_flags_win(tmp_path):
    text = "port: 1\nhost: 127.0.0.2\nallowed_host: [a, b]\nthreads: 3\nstuck_detector: true\ncompat: vllm-omni"
    found = read(tmp_path, text, "--port", "8000", "--allowed-host", "c", "--no-stuck-detector", "--compat", "openai")
    assert (found.port, found.host, found.allowed_host, found.threads) == (8000, "127.0.0.2", ["c"], 3)
    assert (found.stuck_detector, found.compat) == (False, "openai")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prot: 1", "Unknown setting 'prot'. Did you mean 'port'? Valid choices: model, host, port"),
        ("config: other.yaml", "Unknown setting 'config'"),
        ("help: true", "Unknown setting 'help'"),
        ("run: x", "Unknown setting 'run'"),
        ("port: '80'", "port must be a whole number of at least 0, found '80'"),
        ("port: true", "port must be a whole number of at least 0, found True"),
        ("port: -1", "port must be a whole number of at least 0"),
        ("concurrency: 0", "concurrency must be a whole number of at least 1"),
        ("host: 5", "host must be text, found 5"),
        ("host: ''", "host must be text"),
        ("quiet: 1", "quiet must be true or false, found 1"),
        ("allowed_host: a", "allowed_host must be a list of texts, found 'a'"),
        ("allowed_host: [1]", "allowed_host must be a list of texts"),
        ("api_key: secret-word", "api_key must be a list of texts"),
        ("voice_alias: [a=b]", "voice_alias must be a mapping"),
        ("voice_alias: {a: 5}", "voice_alias.a must be text"),
        ("stage_overrides: 5", "stage_overrides must be a mapping"),
        ("log_format: xml", "log_format must be one of text, json"),
        ("port: 1\nport: 2", "key 'port' is repeated"),
        ("max-input-chars: 1\nmax_input_chars: 2", "max_input_chars is there twice"),
        ("- port", "must be a mapping of keys"),
        ("port: [", "is not valid YAML"),
        ("host: ${HOST}", "interpolation"),
    ],
)
def test_a_wrong_file_is_one_sentence(tmp_path, text, expected):
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    assert expected in str(caught.value)
    assert str(tmp_path / "serve.yaml") in str(caught.value)
    assert "secret-word" not in str(caught.value)


def test_a_file_that_is_not_there():
    with pytest.raises(ConfigError, match="cannot be read"):
        parsed("--config", "/no/such/file")


def test_files_lie_beside_it(tmp_path):
    (tmp_path / "my-voice").mkdir()
    found = read(tmp_path, "model: my-voice\ndeploy_config: qwen3_tts\napi_key_file: keys")
    assert found.model == str(tmp_path / "my-voice")
    assert found.deploy_config == "qwen3_tts"  # not there: one that ouzel knows by name
    assert found.api_key_file == str(tmp_path / "keys")


def test_the_example_is_complete_and_says_what_the_defaults_are(tmp_path):
    """Each setting of it, those in comments too, is one; those that are set are the defaults."""
    found = parsed("--config", str(EXAMPLE))
    assert settings_of(found) == settings_of(parsed())
    text = EXAMPLE.read_text(encoding="utf-8").replace("# model:", "model:").replace("# api_key_file:", "api_key_file:")
    (tmp_path / "api-keys").write_text("first\n# a comment\n\nsecond\n")
    (tmp_path / "api-keys").chmod(0o600)
    assert settings_of(read(tmp_path, text)).api_keys == ("first", "second")


# ---- keys


def keys_file(tmp_path: Path, data: bytes, mode: int = 0o600) -> Path:
    path = tmp_path / "keys"
    path.write_bytes(data)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "has no API key"),
        (b"# only\n\n", "has no API key"),
        (b"fine\ntwo words\n", "line 2: a key is one word"),
        ("schl\u00fcssel".encode(), "line 1"),
        (b"\xff\xfe", "line 1"),
        (b"x\n" * 40_000, "no file of API keys"),
    ],
)
def test_a_wrong_file_of_keys_is_named_and_not_quoted(tmp_path, data, expected):
    with pytest.raises(ConfigError) as caught:
        read_keys(keys_file(tmp_path, data))
    assert expected in str(caught.value)
    assert "words" not in str(caught.value)


def test_a_file_of_keys_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_keys(tmp_path / "nothing")


def test_who_may_write_or_read_keys(tmp_path, caplog):
    with pytest.raises(ConfigError, match="chmod o-w"):
        read_keys(keys_file(tmp_path, b"key", 0o602))
    with caplog.at_level(logging.WARNING):
        assert read_keys(keys_file(tmp_path, b"key", 0o640)) == ("key",)
        assert not caplog.records
        assert read_keys(keys_file(tmp_path, b"key", 0o644)) == ("key",)
    assert "everyone on this machine may read it" in caplog.text


def test_keys_in_the_file_itself_are_kept_as_well(tmp_path, caplog):
    path = tmp_path / "serve.yaml"
    path.write_text("api_key: [key]")
    path.chmod(0o644)
    with caplog.at_level(logging.WARNING):
        parsed("--config", str(path))
    assert "chmod o-r" in caplog.text
