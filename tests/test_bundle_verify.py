from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from ouzel.bundle import BundleWriter, open_bundle, verify
from ouzel.errors import BundleError

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("OUZEL_HOME", str(tmp_path / "home"))
    with BundleWriter(tmp_path / "b") as writer:
        writer.describe(family="qwen3_tts", tokenizer="hf_bpe", task="Base")
        writer.path("a.bin").write_bytes(CONTENT)
        writer.path("sub/b.bin").write_bytes(CONTENT[::-1])
        writer.add_artifact("decoder", "onnxruntime", "fp32", ["a.bin"])
    return tmp_path / "b"


@pytest.fixture
def hashed(folder, monkeypatch, tmp_path) -> list[str]:
    """Names of the files that get hashed from now on; what the writer noted is forgotten."""
    names: list[str] = []
    shutil.rmtree(tmp_path / "home" / "cache")
    real = verify.file_sha256

    def recorded(path: Path) -> str:
        names.append(path.name)
        return real(path)

    monkeypatch.setattr(verify, "file_sha256", recorded)
    return names


def edit(folder: Path, change) -> None:
    path = folder / "manifest.json"
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def test_a_bundle_that_was_just_written_is_not_hashed_again(folder, monkeypatch):
    monkeypatch.setattr(verify, "file_sha256", lambda path: pytest.fail(f"{path} was hashed"))
    open_bundle(folder)


def test_an_unchanged_bundle_is_hashed_once(folder, hashed):
    open_bundle(folder)
    assert sorted(hashed) == ["a.bin", "b.bin"]
    open_bundle(folder)
    assert len(hashed) == 2
    open_bundle(folder, force_verify=True)
    assert len(hashed) == 4
    open_bundle(folder, verify=False)
    assert len(hashed) == 4


def test_a_touched_file_is_hashed_again(folder, hashed):
    open_bundle(folder)
    os.utime(folder / "a.bin", (1, 1))
    open_bundle(folder)
    assert hashed[2:] == ["a.bin"]


def test_an_altered_file_is_named_though_size_and_time_are_the_same(folder):
    open_bundle(folder)
    before = (folder / "a.bin").stat()
    while (folder / "a.bin").stat().st_ctime_ns == before.st_ctime_ns:  # the clock of the file system ticks every few ms
        (folder / "a.bin").write_bytes(b"\xff" + CONTENT[1:])
        os.utime(folder / "a.bin", ns=(before.st_atime_ns, before.st_mtime_ns))
    for _ in range(2):  # a failed check leaves no stamp behind
        with pytest.raises(BundleError, match=r"damaged: a\.bin has been altered"):
            open_bundle(folder)


def test_a_tampered_manifest_is_found_in_spite_of_the_stamp(folder):
    open_bundle(folder)
    edit(folder, lambda m: m["files"]["a.bin"].update(sha256="0" * 64))
    with pytest.raises(BundleError, match=r"a\.bin has been altered"):
        open_bundle(folder)


def test_missing_extra_and_truncated_files_are_all_named(folder):
    (folder / "a.bin").write_bytes(CONTENT[:10])
    (folder / "sub" / "b.bin").unlink()
    (folder / "sub" / "c.bin").write_bytes(b"")
    with pytest.raises(BundleError) as caught:
        open_bundle(folder)
    text = str(caught.value)
    assert f"a.bin has 10 bytes instead of {len(CONTENT)}" in text
    assert "sub/b.bin is missing" in text
    assert "sub/c.bin does not belong to it" in text
    assert text.endswith("Convert or pull it again.")


def test_what_file_managers_leave_is_no_problem(folder):
    (folder / "sub" / ".DS_Store").write_bytes(b"x")
    open_bundle(folder)


def test_an_unwritable_or_broken_cache_only_costs_time(folder, hashed, monkeypatch, tmp_path):
    (tmp_path / "notafolder").write_text("")
    monkeypatch.setenv("OUZEL_HOME", str(tmp_path / "notafolder"))
    open_bundle(folder)
    open_bundle(folder)
    assert len(hashed) == 4
    monkeypatch.setenv("OUZEL_HOME", str(tmp_path / "home"))
    open_bundle(folder)
    for stamp in (tmp_path / "home" / "cache" / "verified").iterdir():
        stamp.write_text("[1")
    open_bundle(folder)
    assert len(hashed) == 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(format=2), "has format 2, but this ouzel reads formats up to 1: upgrade"),
        (lambda m: m.update(format="1"), "'format' must be a whole number"),
        (lambda m: m.pop("format"), "it has no 'format'"),
        (lambda m: m.update(name=3), "'name' must be a text, got 3"),
        (lambda m: m.pop("task"), "'task' must be a text, got None"),
        (lambda m: m.update(files=[]), "'files' must be a mapping, got list"),
        (lambda m: m.update(files={}), "lists no files"),
        (lambda m: m["files"].update({"../../evil": m["files"]["a.bin"]}), r"'\.\./\.\./evil', which is not a plain path"),
        (lambda m: m["files"].update({"/etc/passwd": m["files"]["a.bin"]}), "'/etc/passwd', which is not a plain path"),
        (lambda m: m["files"]["a.bin"].update(size="10"), "size of 'a.bin' must be a number of bytes, got '10'"),
        (lambda m: m["files"]["a.bin"].update(size=True), "size of 'a.bin' must be a number"),
        (lambda m: m["files"]["a.bin"].update(sha256="XYZ"), "sha256 of 'a.bin' must be 64 hex digits"),
        (lambda m: m.update(artifacts={}), "'artifacts' must be a list"),
        (lambda m: m["artifacts"].append(3), r"artifacts\[1\] must be a mapping"),
        (lambda m: m["artifacts"][0].update(files=[]), r"artifacts\[0\]: 'files' must be a list with at least one"),
        (lambda m: m["artifacts"][0].update(files=["c.bin"]), "uses 'c.bin', which 'files' does not list"),
        (lambda m: m["artifacts"][0].update(files=["../c.bin"]), r"artifacts\[0\] names the file"),
        (lambda m: m["artifacts"][0].update(meta=3), "'meta' must be a mapping"),
        (lambda m: m.update(placement=3), "'placement' must be a mapping"),
        (lambda m: m.update(placement={"talker": 3}), "placement of 'talker' must be a mapping of names, got 3"),
        (lambda m: m.update(placement={"talker": {"runtime": 3}}), "placement of 'talker' must be a mapping of names"),
    ],
)
def test_a_wrong_manifest_is_one_sentence(folder, change, message):
    edit(folder, change)
    with pytest.raises(BundleError, match=message) as caught:
        open_bundle(folder)
    assert str(folder / "manifest.json") in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\ufeff", "[" * 100_000])
def test_a_manifest_that_is_no_json_object(folder, text):
    (folder / "manifest.json").write_text(text)
    with pytest.raises(BundleError, match=r"not valid JSON|no 'format'"):
        open_bundle(folder)


def test_a_manifest_that_is_a_pipe_is_not_waited_for(folder):
    (folder / "manifest.json").unlink()
    os.mkfifo(folder / "manifest.json")
    with pytest.raises(BundleError, match=r"manifest\.json is not a file"):
        open_bundle(folder)


def test_a_manifest_of_random_bytes(folder):
    (folder / "manifest.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BundleError, match="cannot be read"):
        open_bundle(folder)


def test_places_that_are_no_bundle(tmp_path, folder):
    with pytest.raises(BundleError, match="is not a folder; a bundle is a folder made by"):
        open_bundle(tmp_path / "none")
    (tmp_path / "ckpt").mkdir()
    with pytest.raises(BundleError, match="not a bundle"):
        open_bundle(tmp_path / "ckpt")
    (tmp_path / "ckpt" / "config.json").write_text("{}")
    with pytest.raises(BundleError, match="a checkpoint\\? Run `ouzel convert`"):
        open_bundle(tmp_path / "ckpt")


def test_arrays_and_json_that_cannot_be_read(folder):
    bundle = open_bundle(folder)
    with pytest.raises(BundleError, match="not a readable array"):
        bundle.array("a.bin")
    with pytest.raises(BundleError, match="not readable JSON"):
        bundle.json("a.bin")


def test_a_file_that_cannot_be_read_is_named(folder, monkeypatch, hashed):
    def refused(path: Path) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(verify, "file_sha256", refused)  # root may read everything, so modes cannot show it
    with pytest.raises(BundleError, match=r"a\.bin cannot be read \(Permission denied\)"):
        open_bundle(folder)
