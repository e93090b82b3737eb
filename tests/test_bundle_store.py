from __future__ import annotations

from pathlib import Path

import pytest

from ouzel.bundle import BundleWriter
from ouzel.bundle import store as store_module
from ouzel.bundle.folders import cache_folder, data_folder, models_folder
from ouzel.bundle.store import list_models, resolve_model
from ouzel.errors import BundleError


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("OUZEL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OUZEL_MODEL", raising=False)
    monkeypatch.setattr(store_module, "embedded_bundle", lambda: None)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def make(path: Path) -> Path:
    with BundleWriter(path) as writer:
        writer.describe(family="qwen3_tts", tokenizer="hf_bpe", task="Base")
        writer.path("a.bin").write_bytes(b"x")
    return path


def test_nothing_installed_says_how_to_get_a_model(home):
    assert list_models() == []
    for spec in (None, "anna"):
        with pytest.raises(BundleError, match=r"`ouzel pull REPO` fetches one, `ouzel convert CHECKPOINT OUT` makes one"):
            resolve_model(spec)


def test_the_only_bundle_is_the_default_and_default_wins_over_others(home):
    anna = make(models_folder() / "Anna")
    assert resolve_model() == anna
    bert = make(models_folder() / "bert")
    with pytest.raises(BundleError, match=r"Give -m NAME or set OUZEL_MODEL\. Valid choices: Anna, bert"):
        resolve_model()
    default = make(models_folder() / "default")
    assert resolve_model() == default
    assert [m.path for m in list_models()] == [anna, bert, default]


def test_the_environment_names_the_default(home, monkeypatch):
    make(models_folder() / "anna")
    bert = make(models_folder() / "bert")
    monkeypatch.setenv("OUZEL_MODEL", "bert")
    assert resolve_model() == bert
    monkeypatch.setenv("OUZEL_MODEL", "carl")
    with pytest.raises(BundleError, match="Unknown model 'carl'"):
        resolve_model()


def test_the_bundle_in_the_package_is_the_last_resort(home, monkeypatch, tmp_path):
    inside = make(tmp_path / "package" / "embedded")
    monkeypatch.setattr(store_module, "embedded_bundle", lambda: inside)
    assert resolve_model() == inside
    assert resolve_model("embedded") == inside
    anna = make(models_folder() / "anna")
    assert resolve_model() == anna


def test_names_in_any_case_and_folders(home, tmp_path):
    anna = make(models_folder() / "Anna")
    assert resolve_model("anna") == anna
    assert resolve_model(str(anna)) == anna
    here = make(tmp_path / "mine")
    assert resolve_model(Path("mine")).resolve() == here
    with pytest.raises(BundleError, match=r"Unknown model 'Ana'. Did you mean 'Anna'\? Valid choices: Anna"):
        resolve_model("Ana")
    with pytest.raises(BundleError, match="There is no folder /no/where"):
        resolve_model("/no/where")
    with pytest.raises(BundleError, match="The model is empty"):
        resolve_model(" ")
    (tmp_path / "plain").mkdir()
    with pytest.raises(BundleError, match=r"plain has no manifest\.json \(not a bundle\)"):
        resolve_model("plain")


def test_a_folder_that_is_no_bundle_does_not_hide_a_model_of_that_name(home, tmp_path):
    anna = make(models_folder() / "anna")
    (tmp_path / "anna").mkdir()
    assert resolve_model("anna") == anna


def test_damaged_and_unfinished_bundles(home):
    make(models_folder() / "anna")
    (models_folder() / "bert.partial").mkdir()
    (models_folder() / "bert.partial" / "manifest.json").write_text("{")
    (models_folder() / "carl").mkdir()
    (models_folder() / "carl" / "manifest.json").write_text("{")
    models = list_models()
    assert [(m.name, m.manifest is None) for m in models] == [("anna", False), ("carl", True)]
    assert "not valid JSON" in models[1].problem


@pytest.mark.parametrize(
    ("platform", "env", "data", "cache"),
    [
        ("linux", {}, "/h/.local/share/ouzel", "/h/.cache/ouzel"),
        ("linux", {"XDG_DATA_HOME": "/d", "XDG_CACHE_HOME": "/c"}, "/d/ouzel", "/c/ouzel"),
        ("darwin", {}, "/h/Library/Application Support/ouzel", "/h/Library/Caches/ouzel"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/ouzel", "/l/ouzel/cache"),
        ("linux", {"OUZEL_HOME": "/o"}, "/o", "/o/cache"),
    ],
)
def test_platform_folders(monkeypatch, platform, env, data, cache):
    for name in ("OUZEL_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/h", **env}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", platform)
    assert (str(data_folder()), str(cache_folder())) == (data, cache)
