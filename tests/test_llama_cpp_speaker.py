"""The speaker encoder on ggml: the official vectors, what it refuses, and the bundle that has it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bundles import converted
from conftest import cached_checkpoint
from ouzel.adapters import SpeakerAdapter
from ouzel.api.reference import References
from ouzel.audio.mel import log_mel
from ouzel.bundle import Bundle, BundleWriter, open_bundle
from ouzel.conversion.make import encoder_runtime
from ouzel.conversion.targets import targets
from ouzel.errors import BundleError, UsageError
from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.family import Qwen3TtsFamily
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.llama_cpp import RUNTIME
from ouzel.runtimes.llama_cpp.gguf_file import GgufFile
from ouzel.runtimes.llama_cpp.gguf_write import Weight, write
from test_reference_parity import GOLDEN, NAMES, samples

torch.set_num_threads(1)
ONE = StageOptions(threads=1)


@pytest.fixture(scope="module")
def network() -> Any:
    checkpoint = Checkpoint(cached_checkpoint("tiny", "base", dtype="f32", encoders=True))
    return Qwen3TtsFamily().encoders(checkpoint).speaker_encoder


@pytest.fixture(scope="module")
def bundle(network: Any, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    out = tmp_path_factory.mktemp("speaker") / "bundle"
    with BundleWriter(out) as writer:
        writer.describe(family="qwen3_tts", tokenizer="hf_bpe", task="Base")
        RUNTIME.convert_encoder("speaker_encoder", network, writer, lambda label, done: None)
    return open_bundle(out)


def load(bundle: Bundle, **meta: Any) -> SpeakerAdapter:
    artifact = bundle.artifact("speaker_encoder")
    return RUNTIME.load_encoder(bundle, replace(artifact, meta={**artifact.meta, **meta}), ONE)


@pytest.fixture(scope="module")
def speaker(bundle: Bundle) -> SpeakerAdapter:
    return load(bundle)


def distance(got: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))


def eager(network: Any, heard: np.ndarray) -> np.ndarray:
    with torch.inference_mode():
        return network(torch.from_numpy(heard)).numpy()


@pytest.mark.parametrize("name", NAMES)
def test_the_vector_is_the_official_one(speaker: SpeakerAdapter, network: Any, name: str) -> None:
    vector = speaker.embed(samples(name))
    assert vector.dtype == np.float32
    with np.load(GOLDEN) as golden:
        official, others = golden[f"{name}.vector"], [golden[f"{other}.vector"] for other in NAMES if other != name]
    assert vector.shape == official.shape
    assert distance(vector, official) < 1e-5
    assert distance(vector, eager(network, samples(name))) < 1e-5
    assert min(distance(vector, other) for other in others) > 1e-2


@pytest.mark.parametrize("extra", [0, 1, 255, 256, 4000])
def test_every_length_is_torchs(speaker: SpeakerAdapter, network: Any, extra: int) -> None:
    heard = samples("odd")[: network.spec["least_samples"] + extra]
    assert distance(speaker.embed(heard), eager(network, heard)) < 1e-5


def test_silence_and_noise(speaker: SpeakerAdapter, network: Any) -> None:
    for heard in (np.zeros(9000, np.float32), np.random.default_rng(1).uniform(-1, 1, 9000).astype(np.float32)):
        assert distance(speaker.embed(heard), eager(network, heard)) < 1e-5


def test_mel_frames_are_the_networks(network: Any) -> None:
    heard = samples("short")
    with torch.inference_mode():
        wanted = network.mel(torch.from_numpy(heard))[0].T.numpy()
    mel = log_mel(heard, network.spec["sample_rate"], wanted.shape[1])
    assert mel.shape == (len(heard) // 256, 128)
    np.testing.assert_allclose(mel, wanted, atol=1e-3)  # of -11.5 to 2; near the floor the network's float32 sums show


@pytest.mark.parametrize("shape", [(1279,), (0,), (9000, 1), (256 * (1 << 14) + 1,)])
def test_recordings_that_do_not_fit(speaker: SpeakerAdapter, shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="from 1280 to 4194304 samples do"):
        speaker.embed(np.zeros(shape, np.float32))


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"bands": None}, "speaker encoder's 'bands' in the manifest is None"),
        ({"convolutions": [[5]]}, "meta in the manifest is incomplete"),
        ({"convolutions": [[5, 1], [4, 2], [1, 1]]}, "contradict each other"),
        ({"convolutions": [[5, 1], [3, 1000], [1, 1]]}, "contradict each other"),
        ({"groups": 7}, "contradict each other"),
        ({"groups": 512}, "contradict each other"),
        ({"bands": 64}, r"another model: a.conv1d.0.weight is \(32, 128, 5\), not \(32, 64, 5\)"),
        ({"hidden_size": 64}, "another model: mm.a.fc.weight"),
        ({"convolutions": [[5, 1], *[[3, 2]] * 4, [1, 1]]}, "lacks the tensors a.blk.4.conv_pw1.weight, "),
    ],
)
def test_manifests_of_another_encoder(bundle: Bundle, meta: dict[str, Any], message: str) -> None:
    with pytest.raises(BundleError, match=message):
        load(bundle, **meta)


def test_a_dilation_that_no_file_states_is_kept_in_bounds(bundle: Bundle) -> None:
    """A manifest may say more than the network had; recordings must then be longer: ggml sees no row that is not there."""
    wide = load(bundle, convolutions=[[5, 1], [3, 64], [3, 3], [3, 4], [1, 1]])
    with pytest.raises(UsageError, match=f"from {256 * 65} to"):
        wide.embed(np.zeros(256 * 65 - 1, np.float32))
    assert wide.embed(np.zeros(256 * 65, np.float32)).shape == (128,)


def rewritten(bundle: Bundle, out: Path, kind: str, drop: str = "") -> Bundle:
    """The bundle's file with its weights in half precision, as llama.cpp's converter has them, or without a tensor."""
    (name,) = bundle.artifact("speaker_encoder").files
    file = GgufFile(bundle.path(name))
    kinds = {t.name: "fp32" if len(t.shape) == 1 else kind for t in file.tensors.values()}
    found = [
        Weight(t.name, t.shape, kinds[t.name], lambda n=t.name: file.floats(n)) for t in file.tensors.values() if t.name != drop
    ]
    (out / name).parent.mkdir(parents=True)
    write(out / name, "clip", {}, found)
    return replace(bundle, root=out)


def test_a_file_in_half_precision(bundle: Bundle, speaker: SpeakerAdapter, tmp_path: Path) -> None:
    half = load(rewritten(bundle, tmp_path, "f16"))
    assert 1e-6 < distance(half.embed(samples("short")), speaker.embed(samples("short"))) < 2e-2


def test_a_missing_tensor_is_named(bundle: Bundle, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"lacks the tensors a\.blk\.2\.res2\.3\.bias; it is of another model"):
        load(rewritten(bundle, tmp_path, "fp32", "a.blk.2.res2.3.bias"))


def test_another_stages_file(bundle: Bundle, tmp_path: Path) -> None:
    (name,) = bundle.artifact("speaker_encoder").files
    (tmp_path / name).parent.mkdir(parents=True)
    write(tmp_path / name, "clip", {}, [Weight("a.gen.wav.pre_conv.bias", (3,), "fp32", lambda: np.zeros(3, np.float32))])
    with pytest.raises(BundleError, match=r"lacks the tensors a\.conv1d\.0\.weight, .* and \d+ more"):
        load(replace(bundle, root=tmp_path))


@pytest.mark.parametrize(
    ("names", "speaker_on"),
    [
        ("onnxruntime", "onnxruntime"),
        ("mnn", "onnxruntime"),
        ("llama_cpp,onnxruntime", "llama_cpp"),
        ("onnxruntime,llama_cpp", "onnxruntime"),
    ],
)
def test_the_first_runtime_that_can_reads_recordings(names: str, speaker_on: str) -> None:
    found = targets(names.split(","), None, None)
    assert encoder_runtime("speaker_encoder", found).name == speaker_on
    assert encoder_runtime("codec_encoder", found).name == "onnxruntime"


def test_a_bundle_of_llama_cpp_alone_reads_recordings() -> None:
    bundle = open_bundle(converted(cached_checkpoint("nano", "base", encoders=True), runtimes=("llama_cpp",)))
    placed = {a.stage: (a.runtime, a.weights) for a in bundle.manifest.artifacts}
    assert placed["speaker_encoder"] == ("llama_cpp", "fp32")
    assert placed["codec_encoder"] == ("onnxruntime", "fp32")
    found = References(bundle, threads=1).read(samples("odd"), "Said.", 24_000)
    assert found.speaker_embedding.shape == (64,)
    assert found.ref_codes.shape[1] == 16
