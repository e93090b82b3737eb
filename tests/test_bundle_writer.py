from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ouzel.bundle import BundleWriter, open_bundle
from ouzel.errors import BundleError, OuzelError, UsageError

FILL = """
import resource, sys
from ouzel.bundle import BundleWriter
from ouzel.errors import OuzelError
import numpy as np
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    with BundleWriter(sys.argv[1]) as writer:
        if sys.argv[2] == "array":
            writer.array("tables/big.npy", np.zeros(1_000_000, np.float32))
        else:
            writer.path("big.bin").write_bytes(bytes(1_000_000))
except OuzelError as error:
    print(type(error).__name__, error.exit_code, error)
"""


def write(out: Path, force: bool = False, content: bytes = b"weights") -> Path:
    with BundleWriter(out, force) as writer:
        writer.describe(family="qwen3_tts", tokenizer="hf_bpe", task="CustomVoice", notes="für Tests")
        writer.array("tables/text.npy", np.arange(12, dtype=np.float32).reshape(3, 4))
        writer.json("config.json", {"hidden": 4, "name": "Bär"})
        writer.path("onnxruntime/talker.onnx").write_bytes(content)
        writer.add_artifact("talker", "onnxruntime", "int4", ["onnxruntime/talker.onnx"], {"hidden": 4})
        writer.add_artifact("talker", "onnxruntime", "fp32", ["onnxruntime/talker.onnx"])
        writer.versions["ouzel"] = "0.1.0"
        writer.placement["talker"] = {"runtime": "onnxruntime", "weights": "int4"}
    return out


def left(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_what_is_written_is_what_is_read(tmp_path):
    bundle = open_bundle(write(tmp_path / "b"))
    manifest = bundle.manifest
    assert (manifest.name, manifest.family, manifest.tokenizer, manifest.task) == ("b", "qwen3_tts", "hf_bpe", "CustomVoice")
    assert manifest.notes == "für Tests"
    assert manifest.versions == {"ouzel": "0.1.0"}
    assert sorted(manifest.files) == ["config.json", "onnxruntime/talker.onnx", "tables/text.npy"]
    assert manifest.size == sum(bundle.path(rel).stat().st_size for rel in manifest.files)
    assert bundle.json("config.json") == {"hidden": 4, "name": "Bär"}
    table = bundle.array("tables/text.npy")
    assert isinstance(table, np.memmap)
    assert table.tolist() == np.arange(12).reshape(3, 4).tolist()
    assert left(tmp_path) == ["b"]


def test_artifacts_are_chosen_by_runtime_and_weights_in_order(tmp_path):
    bundle = open_bundle(write(tmp_path / "b"))
    assert bundle.artifact("talker").weights == "int4"
    assert bundle.artifact("talker", weights="fp32").weights == "fp32"
    assert bundle.artifact("talker", "onnxruntime").meta == {"hidden": 4}
    with pytest.raises(BundleError, match=r"no 'talker' for mnn int4\. Valid choices: onnxruntime int4, onnxruntime fp32"):
        bundle.artifact("talker", "mnn", "int4")
    with pytest.raises(BundleError, match=r"no 'decoder' for any runtime\. Valid choices: none"):
        bundle.artifact("decoder")


@pytest.mark.parametrize("rel", ["../x", "/etc/passwd", "a/../b", "a//b", "", ".", "manifest.json", "a\\b", "C:x"])
def test_only_plain_paths_inside_the_bundle(tmp_path, rel):
    bundle = open_bundle(write(tmp_path / "b"))
    with pytest.raises(BundleError, match="not a plain path"):
        bundle.path(rel)
    with pytest.raises(BundleError, match="not a plain path"), BundleWriter(tmp_path / "c") as writer:
        writer.path(rel)
    assert left(tmp_path) == ["b"]


def test_unlisted_files_are_not_read(tmp_path):
    bundle = open_bundle(write(tmp_path / "b"))
    (bundle.root / "new.json").write_text("{}")
    with pytest.raises(BundleError, match=r"has no file 'new\.json'"):
        bundle.json("new.json")


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, UsageError])
def test_an_error_leaves_nothing(tmp_path, error):
    def work(writer: BundleWriter) -> None:
        writer.path("big.bin").write_bytes(b"x")
        raise error("stop")

    with pytest.raises(error), BundleWriter(tmp_path / "b") as writer:
        work(writer)
    assert left(tmp_path) == []


def test_refuses_to_replace_unless_forced(tmp_path):
    write(tmp_path / "b", content=b"old")
    with pytest.raises(UsageError, match="pass --force to replace"):
        write(tmp_path / "b")
    write(tmp_path / "b", force=True, content=b"new")
    assert open_bundle(tmp_path / "b").path("onnxruntime/talker.onnx").read_bytes() == b"new"
    assert left(tmp_path) == ["b"]


def test_a_failed_replacement_keeps_the_old_bundle(tmp_path):
    write(tmp_path / "b", content=b"old")
    with pytest.raises(RuntimeError), BundleWriter(tmp_path / "b", force=True):
        raise RuntimeError("stop")
    assert open_bundle(tmp_path / "b").path("onnxruntime/talker.onnx").read_bytes() == b"old"


def test_never_replaces_what_is_not_a_bundle(tmp_path):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("…")
    (tmp_path / "file").write_text("…")
    for name in ("letters", "file"):
        with pytest.raises(UsageError, match="is not a bundle"):
            write(tmp_path / name, force=True)
    assert left(tmp_path) == ["file", "letters"]


def test_a_leftover_is_named_and_removed_by_force(tmp_path):
    (tmp_path / "b.partial").mkdir()
    with pytest.raises(UsageError, match=r"b\.partial exists"):
        write(tmp_path / "b")
    assert left(tmp_path) == ["b.partial"]
    write(tmp_path / "b", force=True)
    assert left(tmp_path) == ["b"]


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("…")
    with pytest.raises(UsageError, match="Cannot write to"):
        write(tmp_path / "file" / "b")


@pytest.mark.parametrize("how", ["array", "bytes"])
def test_no_room_is_one_sentence_and_leaves_nothing(tmp_path, how):
    """A real limit: the kernel refuses to let the file grow, as a full disk does."""
    done = subprocess.run(
        [sys.executable, "-c", FILL, str(tmp_path / "b"), how], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stderr == ""
    assert done.stdout.startswith(f"OuzelError 1 No room to write {tmp_path / 'b'} (")
    assert left(tmp_path) == []
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_other_write_errors_at_the_end_are_one_sentence(tmp_path):
    def fill(writer: BundleWriter) -> None:
        writer.describe(family="f", tokenizer="t", task="Base")
        writer.path("a.bin").write_bytes(b"x")
        (writer.root / "manifest.json").mkdir()

    with pytest.raises(OuzelError, match=r"Writing .* failed"), BundleWriter(tmp_path / "b") as writer:
        fill(writer)
    assert left(tmp_path) == []


def test_descriptions_are_needed_and_checked(tmp_path):
    with pytest.raises(RuntimeError, match="family, tokenizer, task not described"), BundleWriter(tmp_path / "b"):
        pass
    with pytest.raises(OuzelError, match="Unknown task 'Singing'"), BundleWriter(tmp_path / "b") as writer:
        writer.describe(task="Singing")


def test_equal_content_gives_an_equal_manifest(tmp_path):
    write(tmp_path / "1" / "b")
    write(tmp_path / "2" / "b")
    texts = [(tmp_path / i / "b" / "manifest.json").read_text() for i in ("1", "2")]
    assert texts[0] == texts[1]
    assert json.loads(texts[0])["format"] == 1
