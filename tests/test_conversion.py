from __future__ import annotations

import errno
import json
from pathlib import Path

import numpy as np
import pytest

from hub_server import COMMIT, HubState, hub_server
from ouzel.bundle import BundleWriter, open_bundle
from ouzel.bundle.folders import cache_folder, models_folder
from ouzel.cli.main import main
from ouzel.conversion import convert, make, pull
from ouzel.errors import CheckpointError, MissingExtraError, OuzelError, UsageError, choose
from ouzel.models.registry import register_family, unregister_family
from ouzel.runtimes.base import Offer, RuntimeStatus
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
    offer = Offer({"talker": ("int4", "int8", "fp32"), "predictor": ("int4", "int8", "fp32"), "decoder": ("fp32", "fp16")})
    error: BaseException | None = None

    def status(self):
        return RuntimeStatus(True)

    def load_talker(self, bundle, artifact, options):
        raise AssertionError("not needed to convert")

    load_predictor = load_decoder = load_talker

    def convert(self, networks, writer: BundleWriter, weights, decoder, progress):
        for index, stage in enumerate(self.offer.stages):
            progress(stage, index / 3)
            writer.path(f"{self.name}/{stage}.bin").write_bytes(bytes([networks["number"]]) * 100 + weights.encode())
            if self.error is not None:
                raise self.error
            kind = decoder if stage == "decoder" else weights
            writer.add_artifact(stage, self.name, kind, [f"{self.name}/{stage}.bin"])


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
        "predictor": {"runtime": "toy", "weights": "int8"},
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
    refused("Unknown weights of toy 'int3'.*Valid choices: int4, int8, fp32", UsageError, weights="int3")
    refused("Unknown decoder weights of toy 'int4'.*Valid choices: fp32, fp16", UsageError, decoder="int4")
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
    monkeypatch.setattr(make, "_NEEDED", ("torch", "no_such_module"))
    refused(r"needs no_such_module; install it with: pip install 'ouzel\[convert\]'", MissingExtraError)
    assert not (tmp_path / "b").exists()


def test_pull_converts_a_checkpoint_and_removes_the_download(toy, hub: HubState):
    steps = []
    place = pull("acme/toy-tts", endpoint=hub.url, runtime="toy", progress=lambda s, f: steps.append((s, f)))
    assert place == models_folder() / "toy-tts-toy-int4"
    small = pull("acme/toy-tts", endpoint=hub.url, runtime="toy", weights="int8", decoder="fp16")
    assert small == models_folder() / "toy-tts-toy-int8-decoder-fp16"
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
    monkeypatch.setattr(make, "_NEEDED", ("no_such_module",))
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
    (models_folder() / "toy-tts-toy-int4").mkdir(parents=True)
    with pytest.raises(UsageError, match="exists; choose another place"):
        pull("acme/toy-tts", endpoint=hub.url, runtime="toy")
    with pytest.raises(UsageError, match="Unknown weights of onnxruntime"):
        pull("acme/toy-tts", endpoint=hub.url, weights="int5")
    with pytest.raises(UsageError, match="Unknown decoder weights of onnxruntime 'int5'"):
        pull("acme/toy-tts", endpoint=hub.url, decoder="int5")
    monkeypatch.setattr(make, "_NEEDED", ("no_such_module",))
    with pytest.raises(MissingExtraError):
        pull("acme/toy-tts", endpoint=hub.url, runtime="toy", weights="fp32")
    assert hub.downloads() == []


class SecondRuntime(ToyRuntime):
    """Another one, without a predictor, that stores talkers otherwise."""

    name = "second"
    offer = Offer({"talker": ("q8", "q4"), "decoder": ("f16",)})


@pytest.fixture
def second(toy):
    runtime = SecondRuntime()
    register_runtime(runtime)
    yield runtime
    unregister_runtime("second")


def held(place: Path) -> dict[tuple[str, str, str], str]:
    """(stage, runtime, weights) -> file, of a bundle that is whole."""
    bundle = open_bundle(place, force_verify=True)
    assert sorted(bundle.manifest.files) == sorted(
        ["tables/text.npy", *(rel for a in bundle.manifest.artifacts for rel in a.files)]
    )
    return {(a.stage, a.runtime, a.weights): a.files[0] for a in bundle.manifest.artifacts}


TOY_INT4 = {
    ("talker", "toy", "int4"): "toy/talker.bin",
    ("predictor", "toy", "int4"): "toy/predictor.bin",
    ("decoder", "toy", "fp32"): "toy/decoder.bin",
}
SECOND_Q8 = {("talker", "second", "q8"): "second/talker.bin", ("decoder", "second", "f16"): "second/decoder.bin"}


def test_several_runtimes_in_one_bundle_each_with_its_own_weights(second, checkpoint, tmp_path):
    steps: list[float] = []
    out = convert(checkpoint, tmp_path / "b", runtime="toy, second", progress=lambda s, f: steps.append(f))
    assert held(out) == TOY_INT4 | SECOND_Q8
    assert open_bundle(out).manifest.placement["talker"] == {"runtime": "toy", "weights": "int4"}
    assert steps == sorted(steps)
    assert steps[-1] == 1.0
    chosen = convert(checkpoint, tmp_path / "c", runtime=("second", "toy"), weights="second=q4", decoder={"toy": "fp16"})
    assert {key[1:] for key in held(chosen)} == {("second", "q4"), ("second", "f16"), ("toy", "int4"), ("toy", "fp16")}
    assert open_bundle(chosen).manifest.placement["predictor"] == {"runtime": "toy", "weights": "int4"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"runtime": "second"}, "second offers no predictor; .*--runtime onnxruntime,second"),
        ({"runtime": "toy,toy"}, "'toy' is named twice"),
        ({"runtime": "toy,"}, "Unknown runtime ''"),
        ({"runtime": []}, "Unknown runtime ''"),
        ({"runtime": "toy,second", "weights": "q8"}, "Unknown weights of toy 'q8'. Valid choices: int4, int8, fp32"),
        ({"runtime": "toy", "weights": "second=q8"}, "Unknown runtime in the weights 'second'. Valid choices: toy"),
        ({"runtime": "toy,second", "weights": "toy=int4,q8"}, "'q8' is no choice of weights; write NAME"),
        ({"runtime": "toy,second", "backend": "vulkan"}, "toy, second has no backends to choose from; .*--runtime executorch"),
        ({"runtime": "toy,executorch", "backend": "vulcan"}, "Unknown backend of executorch 'vulcan'. Did you mean 'vulkan'?"),
        ({"runtime": "toy,second", "decoder": "second="}, "'second=' is no choice of weights|'second=' is no choice of decoder"),
    ],
)
def test_choices_that_no_runtime_offers(second, checkpoint, tmp_path, options, message):
    with pytest.raises(UsageError, match=message):
        convert(checkpoint, tmp_path / "b", **options)
    assert not (tmp_path / "b").exists()


def test_a_runtime_is_added_to_a_bundle(second, checkpoint, tmp_path):
    out = convert(checkpoint, tmp_path / "b", runtime="toy")
    tables = (out / "tables/text.npy").read_bytes()
    convert(checkpoint, out, runtime="second", add=True)
    assert held(out) == TOY_INT4 | SECOND_Q8
    assert (out / "tables/text.npy").read_bytes() == tables
    assert open_bundle(out).manifest.placement["talker"]["runtime"] == "toy"
    convert(checkpoint, out, runtime="toy", weights="int8", add=True)  # other weights: beside; the decoder is there already
    found = held(out)
    assert found == TOY_INT4 | SECOND_Q8 | {
        ("talker", "toy", "int8"): "toy-int8/talker.bin",
        ("predictor", "toy", "int8"): "toy-int8/predictor.bin",
    }
    assert (out / "toy-int8/talker.bin").read_bytes().endswith(b"int8")
    assert (out / "toy/talker.bin").read_bytes().endswith(b"int4")
    with pytest.raises(UsageError, match=r"has talker int8, predictor int8, decoder fp32 of toy already; .* --force"):
        convert(checkpoint, out, runtime="toy", weights="int8", add=True)
    convert(checkpoint, out, runtime="toy", weights="int8", add=True, force=True)
    assert {key for key in held(out)} == set(found)


def test_only_the_checkpoint_of_a_bundle_can_be_added_to_it(second, checkpoint, tmp_path):
    out = convert(checkpoint, tmp_path / "b", runtime="toy")
    before = open_bundle(out).manifest
    (checkpoint / "model.safetensors").write_bytes(b"others")
    with pytest.raises(UsageError, match=r"made of another checkpoint than .*ckpt \(model.safetensors differ\)"):
        convert(checkpoint, out, runtime="second", add=True)
    with pytest.raises(UsageError, match="is not a folder; a bundle"):
        convert(checkpoint, tmp_path / "none", runtime="second", add=True)
    (checkpoint / "model.safetensors").write_bytes(b"weights")
    second.error = RuntimeError("bug")
    with pytest.raises(RuntimeError):
        convert(checkpoint, out, runtime="second", add=True)
    assert open_bundle(out, force_verify=True).manifest == before
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "home") == ["b", "ckpt"]


def test_pull_names_a_bundle_after_its_runtimes(second, hub: HubState):
    place = pull("acme/toy-tts", endpoint=hub.url, runtime="toy,second", weights="toy=int8")
    assert place == models_folder() / "toy-tts-toy-int8-second-q8"


class LoweringRuntime(ToyRuntime):
    """Its programs are for `here` or for `there`, where nobody has been."""

    name = "lowering"
    backends = ("here", "there")
    backend = "here"

    def lowering_for(self, backend):
        if backend not in self.backends:
            raise choose("backend of lowering", backend, self.backends)
        other = LoweringRuntime()
        other.backend = backend
        return other

    def convert(self, networks, writer: BundleWriter, weights, decoder, progress):
        unchecked = {"unchecked": "nobody has been there"} if self.backend == "there" else {}
        for stage in self.offer.stages:
            writer.path(f"{self.name}/{stage}.bin").write_bytes(self.backend.encode())
            kind = decoder if stage == "decoder" else weights
            writer.add_artifact(stage, self.name, kind, [f"{self.name}/{stage}.bin"], {"backend": self.backend, **unchecked})


@pytest.fixture
def lowering(toy):
    register_runtime(LoweringRuntime())
    yield
    unregister_runtime("lowering")


def test_programs_are_lowered_for_the_backend_asked_for(lowering, hub: HubState, checkpoint, tmp_path):
    usual = convert(checkpoint, tmp_path / "a", runtime="toy,lowering")
    assert (usual / "lowering/talker.bin").read_bytes() == b"here"
    place = pull("acme/toy-tts", endpoint=hub.url, runtime="toy,lowering", backend="there")
    assert place == models_folder() / "toy-tts-toy-int4-lowering-int4-there"
    assert (place / "lowering/decoder.bin").read_bytes() == b"there"
    with pytest.raises(UsageError, match="Unknown backend of lowering 'three'"):
        convert(checkpoint, tmp_path / "b", runtime="toy,lowering", backend="three")


@pytest.mark.parametrize("backend", ["here", "there"])
def test_the_command_says_what_was_never_run(lowering, checkpoint, tmp_path, caplog, backend):
    command = ["convert", str(checkpoint), str(tmp_path / "a"), "--runtime", "lowering", "--backend", backend]
    assert main(command) == 0
    told = [message for message in caplog.messages if "without having been run" in message]
    assert told == (
        ["talker, predictor, decoder were written without having been run, for there: nobody has been there"]
        if backend == "there"
        else []
    )
