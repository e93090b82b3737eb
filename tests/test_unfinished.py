"""Whatever is interrupted, wherever: only what was finished is left. Ctrl-C and SIGTERM raise between any two instructions."""

from __future__ import annotations

import os
import subprocess
import sys
import wave
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from interruption import interrupted_everywhere
from ouzel.audio.wav import write_wav
from ouzel.bundle import BundleWriter, read_manifest
from ouzel.bundle.place import swap_in
from ouzel.bundle.verify import remember
from ouzel.cli.output import open_output
from ouzel.conversion.pulling import _move_in
from ouzel.models.qwen3_tts.random_checkpoint import write_random_checkpoint
from ouzel.unfinished import Unfinished, remove

SAMPLES = np.zeros(480, np.float32)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write_bundle(out: Path, text: str = "{}") -> None:
    with BundleWriter(out, force=True) as writer:
        writer.describe(family="f", tokenizer="t", task="Base")
        writer.path("a.json").write_text(text)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("OUZEL_HOME", str(tmp_path / "home"))
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


def test_a_wav_file(folder):
    def work() -> None:
        write_wav(folder / "a.wav", [SAMPLES], 24000)

    for _ in interrupted_everywhere(work):
        if names(folder):
            assert names(folder) == ["a.wav"]
            with wave.open(str(folder / "a.wav")) as found:
                assert found.getnframes() == 480
            (folder / "a.wav").unlink()


@pytest.mark.parametrize("format_name", ["wav", "pcm"])
def test_the_output_of_say_and_the_file_it_replaces(folder, format_name):
    out = folder / "a"

    def work() -> None:
        with open_output(str(out), format_name, 24000) as output:
            output.write(SAMPLES)

    out.write_bytes(b"old")
    for _ in interrupted_everywhere(work, "audio", "cli", "unfinished"):
        assert names(folder) == ["a"]
        assert out.stat().st_size in (3, 960 + 44 * (format_name == "wav"))
        out.write_bytes(b"old")


def test_a_bundle(folder):
    def work() -> None:
        write_bundle(folder / "b")

    for _ in interrupted_everywhere(work, "bundle/place", "bundle/writer", "unfinished"):
        if names(folder):
            assert names(folder) == ["b"]
            assert names(folder / "b") == ["a.json", "manifest.json"]
            remove(folder / "b")


def test_an_exchange_of_bundles(folder):
    old, new = folder / "b", folder / "new"

    def work() -> None:
        swap_in(new, old)

    write_bundle(old, '"old"')
    write_bundle(new, '"new"')
    for _ in interrupted_everywhere(work, "bundle/place", "unfinished"):
        assert set(names(folder)) <= {"b", "new"}
        done = (old / "a.json").read_text() == '"new"'
        assert done != new.exists()
        if done:
            remove(old)
            write_bundle(old, '"old"')
            write_bundle(new, '"new"')


def test_a_download_that_moves_in(folder):
    download, place = folder / "download", folder / "b"

    def work() -> None:
        _move_in(download, place)

    for _ in interrupted_everywhere(work):
        assert set(names(folder)) <= {"b", "download"}
        remove(place)
        download.mkdir(exist_ok=True)
        (download / "manifest.json").write_text("{}")


def test_stamps(folder):
    write_bundle(folder / "b")
    manifest = read_manifest(folder / "b")

    def work() -> None:
        remember(folder / "b", manifest)

    stamps = folder.parent / "home" / "cache" / "verified"
    for _ in interrupted_everywhere(work, "bundle/verify", "unfinished"):
        assert [path.suffix for path in stamps.iterdir()] == [".json"]


def test_a_random_checkpoint(folder):
    def work() -> None:
        write_random_checkpoint(folder / "c", size="nano")

    # up to where the writing has begun; all that follows takes a tenth of a second a time
    for _ in islice(interrupted_everywhere(work, "models/qwen3_tts/random_checkpoint", "unfinished"), 200):
        assert names(folder) == []


EXIT = """
import os, sys
from pathlib import Path
from ouzel.audio.wav import WavFile
from ouzel.unfinished import Unfinished

file = WavFile("a.wav", 24000)  # still there at the end of the interpreter
folder = Unfinished(Path("b.partial"))
(folder.path / "deep").mkdir(parents=True)
if os.fork() == 0:
    sys.exit()
os.wait()
print(len(os.listdir()))
sys.exit(143)
"""


def test_the_end_of_the_interpreter_removes_it_and_that_of_a_forked_copy_does_not(folder):
    done = subprocess.run([sys.executable, "-c", EXIT], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (143, "2\n", "")
    assert names(folder) == []


def test_what_was_finished_is_no_longer_removed(folder):
    with Unfinished(folder / "a") as unfinished:
        unfinished.path.write_text("mine")
        unfinished.become(folder / "b")
        unfinished.path.write_text("another's")
        unfinished.discard()
    del unfinished
    assert names(folder) == ["a", "b"]


def test_what_could_not_be_finished_is_removed(folder):
    unfinished = Unfinished.beside(folder / "a")
    unfinished.path.write_text("")
    (folder / "a").mkdir()
    with pytest.raises(OSError, match="directory"):
        unfinished.become(folder / "a")
    assert len(names(folder)) == 2
    del unfinished
    assert names(folder) == ["a"]


def test_two_of_one_name_do_not_meet(folder):
    first, second = (Unfinished.beside(folder / "a") for _ in range(2))
    first.path.write_text("first")
    second.path.write_text("second")
    first.discard()
    second.become(folder / "a")
    assert (folder / "a").read_text() == "second"
    assert names(folder) == ["a"]


def test_a_link_goes_and_not_what_it_leads_to(folder):
    (folder / "target").mkdir()
    os.symlink("target", folder / "link")
    remove(folder / "link")
    remove(folder / "nothing")
    assert names(folder) == ["target"]
