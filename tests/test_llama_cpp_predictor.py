"""The code predictor on ggml: the torch network's codes for every kind of choice, and nothing left behind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ar_case
import llama_case
from ouzel.adapters import PredictorCore, SubtalkerSampling
from ouzel.bundle import Bundle
from ouzel.errors import BundleError, SynthesisError, UsageError
from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.network.predictor import Predictor
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.llama_cpp import RUNTIME
from ouzel.runtimes.llama_cpp.predictor import LlamaPredictor
from test_ort_predictor import GREEDY, WIDTH, eager_frame, hiddens

ONE = StageOptions(threads=1)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return ar_case.nano_checkpoint(tmp_path_factory.mktemp("predictor") / "checkpoint")


@pytest.fixture(scope="module")
def bundle(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return llama_case.nano_bundle(tmp_path_factory.mktemp("predictor") / "fp32", checkpoint, "fp32")


@pytest.fixture(scope="module")
def wide(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> tuple[Bundle, Predictor]:
    """Behind a talker of another width, as in the 1.7B models."""
    draw = np.random.default_rng(3)
    tables = draw.standard_normal((3072, WIDTH)).astype(np.float32), draw.standard_normal((15, 256, WIDTH)).astype(np.float32)
    network, _ = ar_case.wide_predictor(checkpoint, WIDTH)
    return llama_case.write_bundle(tmp_path_factory.mktemp("predictor") / "wide", tables, "fp32", predictor=network), network


def load(bundle: Bundle, threads: int = 1) -> LlamaPredictor:
    return RUNTIME.load_predictor(bundle, bundle.artifact("predictor"), StageOptions(threads=threads))


@pytest.mark.parametrize(
    "sampling",
    [
        GREEDY,
        SubtalkerSampling(temperature=0),
        SubtalkerSampling(),
        SubtalkerSampling(temperature=0.3),
        SubtalkerSampling(top_k=0),
    ],
    ids=["greedy", "cold", "usual", "cool", "all"],
)
def test_codes_are_those_of_torch(bundle: Bundle, checkpoint: Checkpoint, sampling: SubtalkerSampling) -> None:
    core, network = load(bundle), ar_case.predictor(checkpoint)
    assert isinstance(core, PredictorCore)
    for i, hidden in enumerate(hiddens(6)):
        uniforms = np.random.default_rng(i).random(15)
        wanted, logits = eager_frame(network, bundle, hidden, 40 + i, sampling, uniforms)
        got = core.frame(hidden, 40 + i, sampling, uniforms)
        assert got.dtype == np.int64
        assert got.tolist() == wanted
        np.testing.assert_allclose(core._logits, logits[-1], atol=1e-4)


def test_fewer_bits_are_smaller(checkpoint: Checkpoint, tmp_path: Path) -> None:
    sizes = [llama_case.nano_bundle(tmp_path / w, checkpoint, w).manifest.size for w in ("q4_0", "q8_0", "f16", "fp32")]
    assert sizes == sorted(sizes)


def test_a_wider_talker_is_projected(wide: tuple[Bundle, Predictor]) -> None:
    bundle, network = wide
    core = load(bundle)
    for hidden in hiddens(4, WIDTH):
        wanted, _ = eager_frame(network, bundle, hidden, 9, GREEDY, np.zeros(15))
        assert core.frame(hidden, 9, GREEDY, np.zeros(15)).tolist() == wanted


@pytest.mark.parametrize(("weights", "most"), [("f16", 0.004), ("q8_0", 0.04), ("q4_0", 0.04)])
def test_small_weights_are_computed_with(checkpoint: Checkpoint, tmp_path: Path, weights: str, most: float) -> None:
    """Against the same rounded weights as float32, what is left is that activations are rounded too."""
    bundle = llama_case.nano_bundle(tmp_path / weights, checkpoint, weights)
    same = llama_case.unpacked(bundle, tmp_path / "unpacked")
    cores = [LlamaPredictor(made, bundle.artifact("predictor"), ONE) for made in (bundle, same)]
    for core in cores:
        core._first[:] = hiddens(2)
        core._graphs[0].run()
    assert 0 < llama_case.noise(cores[0]._logits, cores[1]._logits) < most


def test_frames_leave_nothing_behind(bundle: Bundle) -> None:
    core, (first, second) = load(bundle), hiddens(2)
    uniforms = np.random.default_rng(0).random(15)
    alone = core.frame(first, 5, SubtalkerSampling(), uniforms)
    for array in core.cache_arrays:
        array.fill(np.nan)
    core.frame(second, 77, GREEDY, uniforms)
    again = core.frame(first, 5, SubtalkerSampling(), uniforms)
    np.testing.assert_array_equal(alone, again)
    assert alone is not again


def test_two_threads_compute_what_one_does(bundle: Bundle) -> None:
    for hidden in hiddens(3):
        given = (hidden, 5, GREEDY, np.zeros(15))
        np.testing.assert_array_equal(load(bundle, 2).frame(*given), load(bundle).frame(*given))


def test_logits_that_are_not_finite_are_an_error(bundle: Bundle) -> None:
    core = load(bundle)
    hidden = hiddens(1)[0]
    hidden[5] = np.nan
    with pytest.raises(SynthesisError, match="not finite"):
        core.frame(hidden, 5, GREEDY, np.zeros(15))
    assert core.frame(hiddens(1)[0], 5, GREEDY, np.zeros(15)).shape == (15,)


def test_an_interruption_is_an_error_and_forgotten(bundle: Bundle) -> None:
    core, hidden = load(bundle), hiddens(1)[0]
    wanted = core.frame(hidden, 5, GREEDY, np.zeros(15))
    reset, core._backend.switch.reset = core._backend.switch.reset, lambda: None
    core.interrupt()
    with pytest.raises(SynthesisError, match="interrupted"):
        core.frame(hidden, 5, GREEDY, np.zeros(15))
    core._backend.switch.reset = reset
    np.testing.assert_array_equal(core.frame(hidden, 5, GREEDY, np.zeros(15)), wanted)


@pytest.mark.parametrize(("width", "code"), [(63, 5), (64, -1), (64, 3072)])
def test_input_outside_the_model_is_refused(bundle: Bundle, width: int, code: int) -> None:
    with pytest.raises(SynthesisError, match=r"takes a hidden vector of 64 values and an id from 0 to 3071"):
        load(bundle).frame(np.zeros(width, np.float32), code, GREEDY, np.zeros(15))


def test_bad_files_are_named(wide: tuple[Bundle, Predictor], bundle: Bundle) -> None:
    artifact = bundle.artifact("predictor")
    with pytest.raises(BundleError, match=r"needs \(codes, 64\)"):
        RUNTIME.load_predictor(wide[0], artifact, ONE)
    with pytest.raises(
        BundleError, match=r"lacks the tensors a\.gen\.code\.output_norm\.weight, a\.gen\.code\.head\.weight.* more"
    ):
        RUNTIME.load_predictor(bundle, replace(artifact, files=bundle.artifact("talker").files), ONE)
    with pytest.raises(BundleError, match=r"another model: .*ffn_gate.weight is \(128, 64\), not \(129, 64\)"):
        RUNTIME.load_predictor(bundle, replace(artifact, meta={**artifact.meta, "inner_size": 129}), ONE)
    with pytest.raises(BundleError, match="contradict each other"):
        RUNTIME.load_predictor(bundle, replace(artifact, meta={**artifact.meta, "positions": 40}), ONE)
    with pytest.raises(BundleError, match="'theta' in the manifest is None"):
        RUNTIME.load_predictor(bundle, replace(artifact, meta={**artifact.meta, "theta": None}), ONE)
    with pytest.raises(UsageError, match=r"'gpu'.*Valid choices: cpu"):
        RUNTIME.load_predictor(bundle, artifact, StageOptions(device="gpu"))
