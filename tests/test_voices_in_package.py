"""The bundle inside the package: shipped whole, listed, named, and the default where nothing else is stored."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from ouzel.bundle import store
from ouzel.bundle.folders import models_folder
from ouzel.cli.main import main
from phone_case import phone_bundle

ROOT = Path(__file__).parents[1]


@pytest.fixture
def inside(tmp_path, monkeypatch) -> Path:
    """A package with a voice in it, and an empty store."""
    monkeypatch.setenv("OUZEL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OUZEL_MODEL", raising=False)
    path = tmp_path / "voices" / "embedded"
    path.parent.mkdir()
    path.symlink_to(phone_bundle())
    monkeypatch.setattr(store, "embedded_bundle", lambda: path)
    return path


@pytest.mark.parametrize("find", [phone_bundle, store.embedded_bundle], ids=["random", "embedded"])
def test_the_wheel_takes_every_file_of_a_bundle(find):
    globs = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["ouzel"]
    bundle = find()
    assert bundle is not None, "this build has no voice"
    assert any(bundle.rglob("*.onnx"))
    for path in (p for p in bundle.rglob("*") if p.is_file()):
        inner = Path("voices") / "embedded" / path.relative_to(bundle)
        assert any(inner.match(pattern) and len(inner.parts) == len(Path(pattern).parts) for pattern in globs), inner


def test_it_is_the_default_until_another_is_stored(inside, capsys):
    assert store.resolve_model() == inside
    assert main(["voices"]) == 0
    assert capsys.readouterr().out.split()[0] == "fern"
    models_folder().mkdir(parents=True)
    (models_folder() / "anna").symlink_to(phone_bundle())
    assert store.resolve_model() == models_folder() / "anna"
    assert store.resolve_model("Embedded") == inside
    (models_folder() / "bert").symlink_to(phone_bundle())
    with pytest.raises(store.BundleError, match=r"Which model\?.* Valid choices: anna, bert, embedded\."):
        store.resolve_model()


def test_models_lists_it_first(inside, capsys):
    models_folder().mkdir(parents=True)
    (models_folder() / "anna").symlink_to(phone_bundle())
    assert main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["NAME", "embedded", "anna"]
    assert main(["models", "--json"]) == 0
    first, _ = json.loads(capsys.readouterr().out)
    assert (first["name"], first["notes"], first["path"]) == ("embedded", "", str(inside))


def test_load_without_arguments_speaks_with_it(inside):
    import ouzel

    with ouzel.load(threads=1, stuck=False, warm_up=False) as voice:
        assert voice.path == phone_bundle().resolve()
        assert [v.name for v in voice.voices] == ["fern", "moss"]
