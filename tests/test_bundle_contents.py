"""Bundles whose checksums are right and whose contents are not: every one is refused in a sentence when it is opened."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from ouzel.cli.main import main

TABLES = ("tables/text.npy", "tables/codec.npy", "tables/residual.npy")


@pytest.fixture
def bundle(tmp_path, monkeypatch, tiny_bundle) -> Path:
    monkeypatch.setenv("OUZEL_HOME", str(tmp_path / "home"))
    shutil.copytree(tiny_bundle, tmp_path / "b")
    return tmp_path / "b"


def refused(bundle: Path, capsys) -> str:
    """What `ouzel say` says of a bundle after its manifest has been made to fit its files."""
    path = bundle / "manifest.json"
    manifest = json.loads(path.read_text())
    for rel in manifest["files"]:
        content = (bundle / rel).read_bytes()
        manifest["files"][rel] = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    path.write_text(json.dumps(manifest))
    out = bundle.parent / "a.wav"
    assert main(["say", "Hello", "-m", str(bundle), "-o", str(out), "--max-new-tokens", "3", "-q"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("ouzel: error: ")
    assert len(err.splitlines()) == 1
    assert not out.exists()
    return err


@pytest.mark.parametrize("rel", TABLES)
@pytest.mark.parametrize("dtype", ["i4", "c8", "U3", "?", "f8", ">f4"])
def test_tables_of_another_type(bundle, capsys, rel, dtype):
    np.save(bundle / rel, np.load(bundle / rel).astype(dtype))
    assert "not float16 or float32; convert the bundle again" in refused(bundle, capsys)


@pytest.mark.parametrize("rel", TABLES)
@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04", b"\x93NUMPY\x01\x00\xff\xff" + b"x" * 70_000])
def test_tables_that_are_no_arrays(bundle, capsys, rel, content):
    (bundle / rel).write_bytes(content)
    assert "is not a readable array" in refused(bundle, capsys)


def test_a_table_that_is_an_archive(bundle, capsys):
    with (bundle / TABLES[0]).open("wb") as file:
        np.savez(file, a=np.zeros(3, np.float32))
    assert "is not a readable array" in refused(bundle, capsys)


def test_the_tokenizer_of_another_model(bundle, capsys):
    path = bundle / "tokenizer.json"
    whole = json.loads(path.read_text())
    for token in ("<|im_start|>", "<|im_end|>"):
        changed = json.dumps(whole).replace(json.dumps(token), json.dumps("<other>"))
        path.write_text(changed)
        assert f"The tokenizer gives {token} the id None" in refused(bundle, capsys)


def test_a_tokenizer_with_ids_beyond_the_text_table(bundle, capsys):
    path = bundle / "tokenizer.json"
    whole = json.loads(path.read_text())
    whole["model"]["vocab"] = {token: number + 100_000 for token, number in whole["model"]["vocab"].items()}
    path.write_text(json.dumps(whole))
    assert "rows; they do not belong together: convert the bundle again" in refused(bundle, capsys)


@pytest.mark.parametrize("rel", ["config.json", "codec.json"])
def test_json_nested_too_deep(bundle, capsys, rel):
    (bundle / rel).write_text("[" * 100_000)
    assert "is not readable JSON" in refused(bundle, capsys)


@pytest.mark.parametrize(
    ("stage", "key", "value"),
    [
        (0, "layers", 10**30),
        (0, "vocab_size", 10**30),
        (0, "head_dim", True),
        (1, "positions", 0),
        (2, "samples_per_frame", 10**30),
        (2, "codebook_size", 1.5),
        (2, "sample_rate", "24000"),
    ],
)
def test_absurd_sizes_in_the_manifest(bundle, capsys, stage, key, value):
    path = bundle / "manifest.json"
    manifest = json.loads(path.read_text())
    artifact = manifest["artifacts"][stage]
    artifact["meta"][key] = value
    path.write_text(json.dumps(manifest))
    assert f"The {artifact['stage']}'s {key!r} in the manifest is {value!r}" in refused(bundle, capsys)
