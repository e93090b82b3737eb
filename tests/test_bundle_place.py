"""No one loses a file: what --force may replace, what a conversion may clear away, and what a failed exchange leaves."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from ouzel.bundle import BundleWriter
from ouzel.bundle.place import swap_in
from ouzel.errors import UsageError


def write(out, text="{}") -> None:
    with BundleWriter(out, force=True) as writer:
        writer.describe(family="f", tokenizer="t", task="Base")
        writer.path("a.json").write_text(text)


def names(folder) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize("text", ['{"name": "my extension"}', "{", "[]", '{"files": [], "format": 1}', "[" * 100_000])
def test_another_programs_manifest_does_not_make_a_bundle(tmp_path, text):
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "manifest.json").write_text(text)
    (tmp_path / "app" / "work.txt").write_text("weeks")
    with pytest.raises(UsageError, match="exists and is not a bundle"):
        write(tmp_path / "app")
    assert names(tmp_path / "app") == ["manifest.json", "work.txt"]


def test_a_bundle_with_the_users_own_files_is_kept(tmp_path):
    write(tmp_path / "b")
    (tmp_path / "b" / "takes").mkdir()
    (tmp_path / "b" / "takes" / "mine.wav").write_text("…")
    with pytest.raises(UsageError, match=r"holds takes/mine\.wav, which is no part of the bundle and would be lost"):
        write(tmp_path / "b")
    assert (tmp_path / "b" / "takes" / "mine.wav").exists()


def test_a_damaged_bundle_can_be_replaced(tmp_path):
    write(tmp_path / "b")
    (tmp_path / "b" / "a.json").unlink()
    write(tmp_path / "b", "[]")
    assert (tmp_path / "b" / "a.json").read_text() == "[]"


def test_neighbours_with_our_suffixes_are_not_ours(tmp_path):
    write(tmp_path / "b")
    for name in ("b.replaced", "b.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.txt").write_text("…")
    with pytest.raises(UsageError, match=r"b\.partial is in the way and was not made by ouzel"):
        write(tmp_path / "b")
    shutil.rmtree(tmp_path / "b.partial")
    write(tmp_path / "b")
    assert names(tmp_path) == ["b", "b.replaced"]
    assert names(tmp_path / "b.replaced") == ["mine.txt"]


def test_a_conversion_at_work_is_not_cleared_away_but_a_killed_one_is(tmp_path):
    code = "import sys, time\nfrom ouzel.bundle import BundleWriter\n"
    code += "with BundleWriter(sys.argv[1]): print(flush=True); time.sleep(600)"
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "b")], stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(UsageError, match="another conversion to the same place is at work"):
            write(tmp_path / "b")
    finally:
        other.kill()
        other.communicate()
    assert names(tmp_path) == ["b.partial"]
    write(tmp_path / "b")
    assert names(tmp_path) == ["b"]
    assert names(tmp_path / "b") == ["a.json", "manifest.json"]


def test_a_failed_exchange_puts_the_old_bundle_back(tmp_path):
    write(tmp_path / "b", '"old"')
    with pytest.raises(FileNotFoundError):
        swap_in(tmp_path / "nothing", tmp_path / "b")
    assert names(tmp_path) == ["b"]
    assert json.loads((tmp_path / "b" / "a.json").read_text()) == "old"


@pytest.mark.parametrize("out", ["/", "b\udcff"])
def test_names_that_no_bundle_can_have(tmp_path, monkeypatch, out):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="cannot be the folder of a bundle"):
        write(out)
    assert names(tmp_path) == []


def test_a_link_is_replaced_and_its_target_stays(tmp_path):
    write(tmp_path / "target")
    os.symlink("target", tmp_path / "b")
    write(tmp_path / "b", "[]")
    assert (tmp_path / "target" / "a.json").read_text() == "{}"
    assert not (tmp_path / "b").is_symlink()
