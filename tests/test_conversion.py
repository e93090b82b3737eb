from __future__ import annotations

import errno
import json
from pathlib import Path

import numpy as np
import pytest

from hub_server import COMMIT, HubState, hub_server
from ouzel import conversion
from ouzel.bundle import BundleWriter, open_bundle
from ouzel.bundle.folders import cache_folder, models_folder
from ouzel.conversion import convert, pull
from ouzel.errors import CheckpointError, MissingExtraError, OuzelError, UsageError
from ouzel.models.registry import register_family, unregister_family
from ouzel.runtimes.base import RuntimeStatus
from ouzel.runtimes.registry import register_runtime, unregister_runtime


class ToyFamily:
    """A family whose checkpoint is a config.json with one number."""

    name = "toy"

    def pipeline(self):
        raise AssertionError("not needed to convert")

    def recognises(self, config):
        return config.get("model_type") == "toy"

    def read_checkpoint(self, path: Path):
        return json.loads((path / "config.json").read_text())

    def write_frontend(self, checkpoint, writer: BundleWriter, weights, progress):
        progress("tables", 0.0)
        writer.describe(tokenizer="toy", task="Base")
        writer.array("tables/text.npy", np.full((2, 2), checkpoint["number"], np.float32))
        progress("tables", 1.0)

    def networks(self, checkpoint):
        return checkpoint

    def frontend(self, bundle):
        raise AssertionError("not needed to convert")


class ToyRuntime:
    """A runtime that writes the number down, or fails as told."""

    name = "toy"
    error: BaseException | None = None

    def status(self):
        return RuntimeStatus(True)

    def load_talker(self, bundle, artifact, options):
        raise AssertionError("not needed to convert")

    load_predictor = load_decoder = load_talker

    def convert(self, networks, writer: BundleWriter, weights, decoder, progress):
        for index, stage in enumerate(("talker", "decoder")):
            progress(stage, index / 2)
            writer.path(f"toy/{stage}.bin").write_bytes(bytes([networks["number"]]) * 100)
            if self.error is not None:
                raise self.error
            kind = decoder if stage == "decoder" else weights
            writer.add_artifact(stage, "toy", kind, [f"toy/{stage}.bin"])


@pytest.fixture
def toy():
    runtime = ToyRuntime()
    register_family(ToyFamily())
    register_runtime(runtime)
    yield runtime
    unregister_family("toy")
    unregister_runtime("toy")


@pytest.fixture
def checkpoint(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("OUZEL_HOME", str(tmp_path / "home"))
    for name in ("HF_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "ckpt"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "toy", "number": 7}')
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


@pytest.fixture
def hub(checkpoint):
    with hub_server() as state:
        state.add_folder("acme/toy-tts", checkpoint)
        yield state


def test_a_bundle_states_where_it_came_from(toy, checkpoint, tmp_path):
    steps = []
    out = convert(checkpoint, tmp_path / "b", runtime="toy", weights="int8", progress=lambda s, f: steps.append((s, f)))
    manifest = open_bundle(out).manifest
    assert (manifest.name, manifest.family, manifest.task) == ("b", "toy", "Base")
    assert manifest.placement == {
        "talker": {"runtime": "toy", "weights": "int8"},
        "decoder": {"runtime": "toy", "weights": "fp32"},
    }
    assert manifest.source["name"] == "ckpt"
    assert sorted(manifest.source["files"]) == ["config.json", "model.safetensors"]
    assert {"ouzel", "torch", "onnxruntime"} <= set(manifest.versions)
    fractions = [f for _, f in steps]
    assert fractions == sorted(fractions)
    assert (fractions[0], fractions[-1]) == (0.0, 1.0)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError(), OSError(errno.ENOSPC, "full"), RuntimeError("bug")])
def test_a_failed_conversion_leaves_nothing(toy, checkpoint, tmp_path, error):
    toy.error = error
    expected = OuzelError if isinstance(error, (MemoryError, OSError)) else type(error)
    with pytest.raises(expected):
        convert(checkpoint, tmp_path / "out" / "b", runtime="toy")
    assert list((tmp_path / "out").iterdir()) == []


def test_unusable_checkpoints_and_options(toy, checkpoint, tmp_path, monkeypatch):
    def refused(match: str, error: type[OuzelError] = CheckpointError, **options: object) -> None:
        with pytest.raises(error, match=match):
            convert(options.pop("checkpoint", checkpoint), tmp_path / "b", **{"runtime": "toy", **options})

    refused("is not a folder; `ouzel pull OWNER/NAME`", checkpoint=tmp_path / "none")
    refused("Unknown weights 'int3'.*Valid choices: fp32, int8, int4", UsageError, weights="int3")
    refused("Unknown decoder weights 'int4'.*Valid choices: fp32, fp16, int8", UsageError, decoder="int4")
    refused("Unknown runtime 'oonx'.*Valid choices: .*onnxruntime", UsageError, runtime="oonx")
    (tmp_path / "empty").mkdir()
    refused("it has no config.json", checkpoint=tmp_path / "empty")
    for text, match in (
        ("{", "cannot be read"),
        ("[]", "must hold a mapping"),
        ('{"model_type": "llama"}', "no known model family"),
    ):
        (checkpoint / "config.json").write_text(text)
        refused(match)
    (checkpoint / "config.json").write_text('{"model_type": "toy", "number": 7}')
    refused("already a bundle", checkpoint=convert(checkpoint, tmp_path / "made", runtime="toy"))
    monkeypatch.setattr(conversion, "_NEEDED", ("torch", "no_such_module"))
    refused(r"needs no_such_module; install it with: pip install 'ouzel\[convert\]'", MissingExtraError)
    assert not (tmp_path / "b").exists()


def test_pull_converts_a_checkpoint_and_removes_the_download(toy, hub: HubState):
    steps = []
    place = pull("acme/toy-tts", endpoint=hub.url, runtime="toy", progress=lambda s, f: steps.append((s, f)))
    assert place == models_folder() / "toy-tts-int4"
    small = pull("acme/toy-tts", endpoint=hub.url, runtime="toy", weights="int8", decoder="fp16")
    assert small == models_folder() / "toy-tts-int8-decoder-fp16"
    assert open_bundle(small).artifact("decoder").weights == "fp16"
    source = open_bundle(place).manifest.source
    assert (source["name"], source["repo"], source["commit"]) == ("toy-tts", "acme/toy-tts", COMMIT)
    assert list((cache_folder() / "hub").iterdir()) == []
    fractions = [f for _, f in steps]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0


def test_pull_keeps_the_checkpoint_when_asked_or_when_converting_fails(toy, hub: HubState, tmp_path):
    toy.error = RuntimeError("bug")
    with pytest.raises(RuntimeError):
        pull("acme/toy-tts", endpoint=hub.url, runtime="toy")
    before = len(hub.downloads())
    toy.error = None
    pull("acme/toy-tts", endpoint=hub.url, runtime="toy", keep=True, out=tmp_path / "mine")
    assert len(hub.downloads()) == before
    assert (cache_folder() / "hub" / "acme--toy-tts" / COMMIT / "model.safetensors").is_file()
    assert open_bundle(tmp_path / "mine").manifest.name == "mine"


def test_pull_takes_a_bundle_as_it_is(toy, hub: HubState, checkpoint, tmp_path, monkeypatch):
    made = convert(checkpoint, tmp_path / "made", runtime="toy")
    hub.add_folder("acme/voice", made)
    monkeypatch.setattr(conversion, "_NEEDED", ("no_such_module",))
    place = pull("acme/voice@v1", endpoint=hub.url, runtime="toy")
    assert place == models_folder() / "voice"
    assert open_bundle(place).manifest == open_bundle(made).manifest
    with pytest.raises(UsageError, match="pass --force to replace"):
        pull("acme/voice", endpoint=hub.url, runtime="toy")
    assert pull("acme/voice", endpoint=hub.url, runtime="toy", force=True) == place
    assert [p.name for p in models_folder().iterdir()] == ["voice"]


def test_pull_says_early_what_would_fail_late(toy, hub: HubState, monkeypatch):
    hub.repos["acme/llama"] = {"config.json": b'{"model_type": "llama"}', "model.safetensors": b"x" * 9}
    with pytest.raises(CheckpointError, match="no known model family"):
        pull("acme/llama", endpoint=hub.url, runtime="toy")
    (models_folder() / "toy-tts-int4").mkdir(parents=True)
    with pytest.raises(UsageError, match="exists; choose another place"):
        pull("acme/toy-tts", endpoint=hub.url, runtime="toy")
    with pytest.raises(UsageError, match="Unknown weights"):
        pull("acme/toy-tts", endpoint=hub.url, weights="int5")
    with pytest.raises(UsageError, match="Unknown decoder weights 'int5'"):
        pull("acme/toy-tts", endpoint=hub.url, decoder="int5")
    monkeypatch.setattr(conversion, "_NEEDED", ("no_such_module",))
    with pytest.raises(MissingExtraError):
        pull("acme/toy-tts", endpoint=hub.url, runtime="toy", weights="fp32")
    assert hub.downloads() == []
