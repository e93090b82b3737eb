"""What MNN refuses: a sentence each, and never the end of the process."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from cli_run import environment
from mnn_case import ONE
from ouzel.bundle import Bundle
from ouzel.errors import BundleError, MissingExtraError, OuzelError, UsageError
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.mnn import RUNTIME
from ouzel.runtimes.mnn.convert import to_mnn
from ouzel.runtimes.mnn.library import captured, library


@pytest.fixture(scope="module")
def bundle(mnn_bundle: Callable[[str], Bundle]) -> Bundle:
    return mnn_bundle("fp32")


@pytest.fixture
def damaged(bundle: Bundle, tmp_path: Path) -> Bundle:
    """A copy that may be damaged after it was opened."""
    shutil.copytree(bundle.root, tmp_path / "bundle")
    return replace(bundle, root=tmp_path / "bundle")


LOADERS = {"talker": RUNTIME.load_talker, "predictor": RUNTIME.load_predictor, "decoder": RUNTIME.load_decoder}


@pytest.mark.parametrize("stage", LOADERS)
def test_without_the_package_the_pip_command_is_named(bundle: Bundle, stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    with pytest.raises(MissingExtraError, match=r"pip install 'ouzel\[mnn\]'"):
        LOADERS[stage](bundle, bundle.artifact(stage), ONE)
    status = RUNTIME.status()
    assert not status.available
    assert "pip install" in status.detail


@pytest.mark.parametrize("version", ["3.5.0", "3.60.1", "4.0"])
def test_another_series_is_refused(bundle: Bundle, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: version)
    with pytest.raises(MissingExtraError, match=rf"MNN 3\.6\.\*, not with {version}.*pip install"):
        RUNTIME.load_talker(bundle, bundle.artifact("talker"), ONE)
    assert not RUNTIME.status().available


def test_ouzel_finds_the_package_without_importing_it(tmp_path: Path) -> None:
    code = "import sys; from ouzel.runtimes import get_runtime; print(get_runtime('mnn').status()); print('MNN' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(tmp_path), capture_output=True, text=True, check=True, timeout=60
    )
    assert "available=True" in done.stdout
    assert done.stdout.splitlines()[-1] == "False"


def test_loading_prints_nothing(bundle: Bundle, capfd: pytest.CaptureFixture[str]) -> None:
    for stage, load in LOADERS.items():
        load(bundle, bundle.artifact(stage), ONE)
    assert capfd.readouterr().out == ""


def test_what_native_code_prints_is_gathered(capfd: pytest.CaptureFixture[str]) -> None:
    library()
    with captured() as lines, pytest.raises(Exception, match="Invalid model file"):
        library().Interpreter("nothing.mnn")
    assert any("nothing.mnn" in line for line in lines)
    assert capfd.readouterr().out == ""


def test_placements_that_cannot_be_are_named(bundle: Bundle) -> None:
    artifact = bundle.artifact("talker")
    with pytest.raises(UsageError, match=r"'tpu'.*Valid choices: cpu, opencl, vulkan, metal, cuda"):
        RUNTIME.load_talker(bundle, artifact, StageOptions(device="tpu"))
    with pytest.raises(UsageError, match=r"'int4'.*Valid choices: auto, fp32, low"):
        RUNTIME.load_talker(bundle, artifact, StageOptions(precision="int4"))
    for threads in (-1, 65):
        with pytest.raises(UsageError, match="0 \\(automatic\\) to 64"):
            RUNTIME.load_talker(bundle, artifact, StageOptions(threads=threads))
    decoder = bundle.artifact("decoder")  # computes in float32
    with pytest.raises(UsageError, match=r"'opencl'.*Valid choices: cpu\."):
        RUNTIME.load_decoder(bundle, decoder, StageOptions(device="opencl"))
    with pytest.raises(UsageError, match=r"'low'.*Valid choices: auto, fp32\."):
        RUNTIME.load_decoder(bundle, decoder, StageOptions(precision="low"))


@pytest.mark.skipif(sys.platform != "linux", reason="packages for other systems may bring more backends")
@pytest.mark.parametrize("device", ["opencl", "vulkan", "metal", "cuda"])
def test_a_backend_that_mnn_was_built_without_is_no_silent_cpu(bundle: Bundle, device: str) -> None:
    with pytest.raises(UsageError, match=rf"no '{device}' here; choose the device cpu"):
        RUNTIME.load_talker(bundle, bundle.artifact("talker"), replace(ONE, device=device))


def test_the_files_of_another_network_are_named_by_what_they_lack(bundle: Bundle) -> None:
    talker, predictor, decoder = (bundle.artifact(stage) for stage in LOADERS)
    with pytest.raises(BundleError, match=r"predictor\.mnn is not the network .* past\.1\.key, past\.1\.value, logits\."):
        RUNTIME.load_talker(bundle, replace(talker, files=predictor.files[:2]), ONE)
    with pytest.raises(BundleError, match=r"talker\.mnn is not the network .* codes, pre, filled"):
        RUNTIME.load_decoder(bundle, replace(decoder, files=talker.files), ONE)
    with pytest.raises(BundleError, match="needs 15 heads, the bundle has 14"):
        RUNTIME.load_predictor(bundle, replace(predictor, files=predictor.files[:-1]), ONE)


@pytest.mark.parametrize(("key", "value"), [("kv_heads", 4), ("head_dim", 32), ("hidden_size", 128), ("vocab_size", 256)])
def test_shapes_of_another_model_are_refused_at_load(bundle: Bundle, key: str, value: int) -> None:
    artifact = bundle.artifact("talker")
    with pytest.raises(BundleError, match=r"is of another model: its (rows|past\.0\.key|logits) has the shape"):
        RUNTIME.load_talker(bundle, replace(artifact, meta={**artifact.meta, key: value}), ONE)


def test_meta_that_is_no_number_is_refused(bundle: Bundle) -> None:
    artifact = bundle.artifact("talker")
    with pytest.raises(BundleError, match="'layers' in the manifest is 0"):
        RUNTIME.load_talker(bundle, replace(artifact, meta={**artifact.meta, "layers": 0}), ONE)


@pytest.mark.parametrize("stage", LOADERS)
def test_weights_that_went_away_or_were_cut_are_refused(damaged: Bundle, stage: str) -> None:
    artifact = damaged.artifact(stage)
    path = damaged.path(artifact.files[1])
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(BundleError, match=r"\.weight is missing or not the file"):
        LOADERS[stage](damaged, artifact, ONE)
    path.unlink()
    with pytest.raises(BundleError, match=r"\.weight is missing or not the file"):
        LOADERS[stage](damaged, artifact, ONE)


@pytest.mark.parametrize("stage", LOADERS)
def test_a_damaged_graph_is_refused(damaged: Bundle, stage: str) -> None:
    artifact = damaged.artifact(stage)
    path = damaged.path(artifact.files[0])
    size = path.stat().st_size
    for content in (np.random.default_rng(0).bytes(size), b"\0" * size, b"not a graph".ljust(size)):
        path.write_bytes(content)
        with pytest.raises(BundleError, match=r"cannot load .*Convert the bundle again"):
            LOADERS[stage](damaged, artifact, ONE)


def test_a_graph_that_cannot_be_converted_says_why(tmp_path: Path) -> None:
    (tmp_path / "graph.onnx").write_bytes(b"no graph")
    with pytest.raises(OuzelError, match=r"could not convert graph\.onnx: ."):
        to_mnn(tmp_path / "graph.onnx", tmp_path / "graph.mnn", "fp32")


@pytest.mark.parametrize(
    ("weights", "stage"), [("fp32", "talker"), ("int4", "talker"), ("fp32", "predictor"), ("int8", "predictor")]
)
def test_weights_of_the_right_size_but_another_network_are_refused(
    mnn_bundle: Callable[[str], Bundle], tmp_path: Path, weights: str, stage: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Checksums are compared when a bundle is opened; this is what changes behind them, or went wrong in a conversion."""
    bundle = mnn_bundle(weights)
    shutil.copytree(bundle.root, tmp_path / "bundle")
    artifact, damaged = bundle.artifact(stage), replace(bundle, root=tmp_path / "bundle")
    path = damaged.path(artifact.files[1])
    content = path.read_bytes()
    for wrong in (content[len(content) // 2 :] + content[: len(content) // 2], bytes(len(content))):
        path.write_bytes(wrong)
        with pytest.raises(BundleError, match=r"not what was converted|cannot be run: .* Convert or download"):
            LOADERS[stage](damaged, artifact, ONE)
    assert capfd.readouterr().out == ""
