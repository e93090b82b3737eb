from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hub_server import COMMIT, HubState, hub_server
from ouzel.bundle import BundleWriter
from ouzel.bundle.fetch import fetch, split_repo
from ouzel.bundle.hub import Hub
from ouzel.errors import BundleError, CheckpointError, OuzelError, UsageError

REPO = "acme/tiny-tts"
WEIGHTS = os.urandom(300_000)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    monkeypatch.setenv("OUZEL_HOME", str(tmp_path / "home"))
    for name in ("HF_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    with hub_server() as state:
        state.repos[REPO] = {
            "config.json": b'{"model_type": "qwen3_tts"}',
            "merges.txt": b"a b\n",
            "model.safetensors": WEIGHTS,
            "speech_tokenizer/config.json": b"{}",
            "speech_tokenizer/model.safetensors": WEIGHTS[:1000],
            "pytorch_model.bin": b"pickle",
            "README.md": b"# tiny",
        }
        yield state


def files_below(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_fetches_the_files_of_a_checkpoint_and_never_a_pickle(hub: HubState, tmp_path):
    seen = []
    got = fetch(REPO, Hub(hub.url), folder=tmp_path / "d", progress=lambda step, f: seen.append((step, f)))
    assert (got.commit, got.is_bundle, got.folder) == (COMMIT, False, tmp_path / "d" / COMMIT)
    expected = {k: v for k, v in hub.repos[REPO].items() if k not in ("pytorch_model.bin", "README.md")}
    assert files_below(got.folder) == expected
    assert not any("pytorch_model.bin" in path for _, path, _ in hub.log)
    fractions = [f for _, f in seen]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    assert any(step == "downloading model.safetensors" for step, _ in seen)


def test_second_fetch_downloads_nothing(hub: HubState, tmp_path):
    fetch(REPO, Hub(hub.url), folder=tmp_path)
    before = len(hub.downloads())
    fetch(REPO, Hub(hub.url), folder=tmp_path)
    assert len(hub.downloads()) == before


def test_a_dropped_connection_is_taken_up_with_a_range(hub: HubState, tmp_path, monkeypatch):
    monkeypatch.setattr("ouzel.bundle.hub._WAIT_S", 0.0)
    hub.cut_after, hub.cuts = {"model.safetensors": 100_000}, 1
    got = fetch(REPO, Hub(hub.url), folder=tmp_path)
    assert (got.folder / "model.safetensors").read_bytes() == WEIGHTS
    assert "bytes=100000-" in hub.ranges()


def test_a_connection_that_keeps_dropping_is_given_up_and_the_part_kept(hub: HubState, tmp_path, monkeypatch):
    monkeypatch.setattr("ouzel.bundle.hub._WAIT_S", 0.0)
    hub.cut_after, hub.cuts = {"model.safetensors": 100_000}, 99
    hub.dead_after = 100_000
    with pytest.raises(OuzelError, match="run the same command again to resume"):
        fetch(REPO, Hub(hub.url), folder=tmp_path)
    assert (tmp_path / COMMIT / "model.safetensors.part").read_bytes() == WEIGHTS[:100_000]


def test_a_server_without_ranges_is_read_from_the_start(hub: HubState, tmp_path):
    hub.ignore_ranges = True
    (tmp_path / COMMIT).mkdir()
    (tmp_path / COMMIT / "model.safetensors.part").write_bytes(WEIGHTS[:7777])
    got = fetch(REPO, Hub(hub.url), folder=tmp_path)
    assert (got.folder / "model.safetensors").read_bytes() == WEIGHTS
    assert hub.ranges() == ["bytes=7777-", "bytes=7777-"]  # at the redirect and at its target


def test_an_interrupted_fetch_goes_on_where_it_stopped(hub: HubState, tmp_path):
    class Stop(BaseException):
        pass

    def stop_in_the_middle(step: str, fraction: float) -> None:
        if step == "downloading model.safetensors" and fraction > 0.3:
            raise Stop

    with pytest.raises(Stop):
        fetch(REPO, Hub(hub.url), folder=tmp_path, progress=stop_in_the_middle)
    kept = (tmp_path / COMMIT / "model.safetensors.part").stat().st_size
    assert 0 < kept < len(WEIGHTS)
    hub.log.clear()
    got = fetch(REPO, Hub(hub.url), folder=tmp_path)
    assert (got.folder / "model.safetensors").read_bytes() == WEIGHTS
    assert set(hub.ranges()) == {f"bytes={kept}-"}


def test_a_wrong_part_is_thrown_away_and_fetched_anew(hub: HubState, tmp_path):
    folder = tmp_path / COMMIT
    folder.mkdir()
    (folder / "model.safetensors.part").write_bytes(b"\0" * 1000)
    got = fetch(REPO, Hub(hub.url), folder=tmp_path)
    assert (got.folder / "model.safetensors").read_bytes() == WEIGHTS


@pytest.mark.parametrize("name", ["model.safetensors", "merges.txt"])
def test_a_damaged_file_is_an_error_and_not_kept(hub: HubState, tmp_path, name):
    hub.damaged.add(name)
    with pytest.raises(OuzelError, match=rf"{name} of {REPO} arrived damaged"):
        fetch(REPO, Hub(hub.url), folder=tmp_path)
    assert not list((tmp_path / COMMIT).glob(name + "*"))


def test_unknown_repository_revision_and_gate(hub: HubState, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="acme/none was not found"):
        fetch("acme/none", Hub(hub.url), folder=tmp_path)
    with pytest.raises(UsageError, match="no revision 'v9'"):
        fetch(f"{REPO}@v9", Hub(hub.url), folder=tmp_path)
    hub.gated.add(REPO)
    hub.token = "hf_right"
    with pytest.raises(UsageError, match="is gated: accept its terms"):
        fetch(REPO, Hub(hub.url), folder=tmp_path)
    monkeypatch.setenv("HF_TOKEN", "hf_right")
    assert fetch(f"{REPO}@v1", Hub(hub.url), folder=tmp_path).commit == COMMIT


def test_server_trouble_and_no_server_are_one_sentence(hub: HubState, tmp_path):
    hub.status = 500
    with pytest.raises(OuzelError, match="answered HTTP 500"):
        fetch(REPO, Hub(hub.url), folder=tmp_path)
    with pytest.raises(OuzelError, match=r"The connection to http://127.0.0.1:9 failed") as caught:
        fetch(REPO, Hub("http://127.0.0.1:9"), folder=tmp_path)
    assert caught.value.exit_code == 1
    assert "\n" not in str(caught.value)
    with pytest.raises(UsageError, match="must begin with http"):
        Hub("ftp://example")


def test_endpoint_comes_from_the_environment(hub: HubState, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", hub.url + "/")
    assert Hub().endpoint == hub.url


@pytest.mark.parametrize("spec", ["tiny", "a/b/c", "a/b@", "../etc/passwd", "https://x/a/b", ""])
def test_repository_names_are_checked(spec):
    with pytest.raises(UsageError, match="OWNER/NAME"):
        split_repo(spec)


def test_the_config_is_checked_before_the_weights_are_fetched(hub: HubState, tmp_path):
    def refuse(config):
        raise CheckpointError(f"no {config['model_type']}")

    with pytest.raises(CheckpointError, match="no qwen3_tts"):
        fetch(REPO, Hub(hub.url), folder=tmp_path, check=refuse)
    assert hub.downloads() == []


def test_repositories_without_anything_of_use(hub: HubState, tmp_path):
    hub.repos["acme/words"] = {"README.md": b"hi"}
    hub.repos["acme/pickle"] = {"config.json": b"{}", "pytorch_model.bin": b"x"}
    hub.repos["acme/broken"] = {"config.json": b"{", "model.safetensors": b"x"}
    hub.repos["acme/evil"] = {"config.json": b"{}", "../../evil.json": b"{}", "model.safetensors": b"x"}
    for repo, message in (("words", "neither a checkpoint"), ("pickle", r"no \.safetensors"), ("broken", "not valid JSON")):
        with pytest.raises(CheckpointError, match=message):
            fetch(f"acme/{repo}", Hub(hub.url), folder=tmp_path)
    with pytest.raises(BundleError, match="refused"):
        fetch("acme/evil", Hub(hub.url), folder=tmp_path)


def test_too_little_disk_is_said_before_fetching(hub: HubState, tmp_path, monkeypatch):
    monkeypatch.setattr("ouzel.bundle.fetch._MARGIN", 1 << 60)
    with pytest.raises(UsageError, match="MiB are free; free some or set OUZEL_HOME"):
        fetch(REPO, Hub(hub.url), folder=tmp_path)
    assert hub.downloads() == []


def test_fetches_a_bundle_by_its_manifest(hub: HubState, tmp_path):
    with BundleWriter(tmp_path / "made") as writer:
        writer.describe(family="qwen3_tts", tokenizer="hf_bpe", task="CustomVoice")
        writer.path("onnxruntime/talker.onnx").write_bytes(WEIGHTS)
    hub.add_folder("acme/bundle", tmp_path / "made")
    hub.repos["acme/bundle"] |= {"README.md": b"# a bundle", ".gitattributes": b""}
    got = fetch("acme/bundle", Hub(hub.url), folder=tmp_path / "d")
    assert got.is_bundle
    assert files_below(got.folder) == files_below(tmp_path / "made")
    manifest = json.loads((got.folder / "manifest.json").read_text())
    del hub.repos["acme/bundle"]["onnxruntime/talker.onnx"]
    with pytest.raises(OuzelError, match=r"lacks onnxruntime/talker\.onnx"):
        fetch("acme/bundle", Hub(hub.url), folder=tmp_path / "e")
    assert list(manifest["files"]) == ["onnxruntime/talker.onnx"]
