"""The code predictor: the contract's full recompute, torch with caches, and ONNX Runtime with the choice in the graph."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import ar_case
from ouzel.adapters import PredictorCore, SubtalkerSampling
from ouzel.bundle import Bundle, open_bundle
from ouzel.errors import BundleError, SynthesisError
from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.network.predictor import Predictor
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.onnxruntime import RUNTIME
from ouzel.runtimes.onnxruntime.predictor import OrtPredictor
from ouzel.sampling import choose_residual

ONE = StageOptions(threads=1)
WIDTH = 96  # of a talker wider than its predictor, as in the 1.7B models
GREEDY = SubtalkerSampling(do_sample=False)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return ar_case.nano_checkpoint(tmp_path_factory.mktemp("predictor") / "checkpoint")


@pytest.fixture(scope="module")
def bundle(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return ar_case.nano_bundle(tmp_path_factory.mktemp("predictor") / "fp32", checkpoint, "fp32")


@pytest.fixture(scope="module")
def wide(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> tuple[Bundle, Predictor]:
    draw = np.random.default_rng(3)
    tables = draw.standard_normal((3072, WIDTH)).astype(np.float32), draw.standard_normal((15, 256, WIDTH)).astype(np.float32)
    network, _ = ar_case.wide_predictor(checkpoint, WIDTH)
    out = tmp_path_factory.mktemp("predictor") / "wide"
    return ar_case.write_bundle(out, ar_case.talker(checkpoint), network, tables, "fp32"), network


def load(bundle: Bundle) -> OrtPredictor:
    return RUNTIME.load_predictor(bundle, bundle.artifact("predictor"), ONE)


def eager_frame(
    network: Predictor, bundle: Bundle, hidden: np.ndarray, code0: int, sampling: SubtalkerSampling, uniforms: np.ndarray
) -> tuple[list[int], list[np.ndarray]]:
    """Codes and logits by the torch network and `choose_residual`."""
    residual = bundle.array("tables/residual.npy")
    rows, caches = np.stack([hidden, bundle.array("tables/codec.npy")[code0]]), network.caches()
    codes, seen = [], []
    for q in range(15):
        with torch.no_grad():
            out = network(torch.tensor(rows)[None], torch.tensor([q + 2], dtype=torch.int32), *caches)
        seen.append(out[q][0].numpy())
        codes.append(choose_residual(seen[-1], sampling, float(uniforms[q])))
        rows = residual[q, codes[-1]][None]
    return codes, seen


def hiddens(count: int, width: int = 64) -> np.ndarray:
    return np.random.default_rng(7).standard_normal((count, width)).astype(np.float32)


def test_the_network_follows_the_contract(checkpoint: Checkpoint) -> None:
    network, weights = ar_case.wide_predictor(checkpoint, WIDTH)
    rows = hiddens(16, WIDTH)
    projection, bias = (weights[f"small_to_mtp_projection.{k}"].numpy().astype(np.float64) for k in ("weight", "bias"))
    inside = {name: w for name, w in weights.items() if name.startswith(("layers.", "norm."))}
    states = ar_case.slow_transformer(checkpoint.config.talker.predictor, inside, rows @ projection.T + bias)
    caches = network.caches()
    for q in range(15):
        given = rows[:2] if q == 0 else rows[q + 1 : q + 2]
        with torch.no_grad():
            out = network(torch.tensor(given)[None], torch.tensor([q + 2], dtype=torch.int32), *caches)
        wanted = weights[f"lm_head.{q}.weight"].numpy().astype(np.float64) @ states[q + 1]
        np.testing.assert_allclose(out[q][0].numpy(), wanted, atol=1e-4)


@pytest.mark.parametrize("sampling", [GREEDY, SubtalkerSampling(temperature=0), SubtalkerSampling(), SubtalkerSampling(top_k=0)])
def test_codes_are_those_of_torch(bundle: Bundle, checkpoint: Checkpoint, sampling: SubtalkerSampling) -> None:
    core, network = load(bundle), ar_case.predictor(checkpoint)
    assert isinstance(core, PredictorCore)
    for i, hidden in enumerate(hiddens(6)):
        uniforms = np.random.default_rng(i).random(15)
        wanted, _ = eager_frame(network, bundle, hidden, 40 + i, sampling, uniforms)
        got = core.frame(hidden, 40 + i, sampling, uniforms)
        assert got.dtype == np.int64
        assert got.tolist() == wanted


def test_a_wider_talker_is_projected(wide: tuple[Bundle, Predictor]) -> None:
    bundle, network = wide
    core = load(bundle)
    for hidden in hiddens(4, WIDTH):
        wanted, _ = eager_frame(network, bundle, hidden, 9, GREEDY, np.zeros(15))
        assert core.frame(hidden, 9, GREEDY, np.zeros(15)).tolist() == wanted


def test_draws_near_one_take_the_least_likely_code_that_is_left(bundle: Bundle, checkpoint: Checkpoint) -> None:
    core, network = load(bundle), ar_case.predictor(checkpoint)
    sampling, uniforms = SubtalkerSampling(top_k=3, temperature=5), np.full(15, np.nextafter(1.0, 0.0))
    codes = core.frame(hiddens(1)[0], 3, sampling, uniforms)
    wanted, logits = eager_frame(network, bundle, hiddens(1)[0], 3, sampling, uniforms)
    assert codes.tolist() == wanted
    for code, scores in zip(codes, logits, strict=True):
        assert code == np.argsort(-scores)[2]


def test_frames_leave_nothing_behind(bundle: Bundle) -> None:
    core, (first, second) = load(bundle), hiddens(2)
    uniforms = np.random.default_rng(0).random(15)
    alone = core.frame(first, 5, SubtalkerSampling(), uniforms)
    core._caches.fill(np.nan)
    core.frame(second, 77, GREEDY, uniforms)
    again = core.frame(first, 5, SubtalkerSampling(), uniforms)
    np.testing.assert_array_equal(alone, again)
    assert alone is not again


def test_logits_that_are_not_finite_are_an_error(bundle: Bundle) -> None:
    core = load(bundle)
    hidden = hiddens(1)[0]
    hidden[5] = np.nan
    with pytest.raises(SynthesisError, match="not finite"):
        core.frame(hidden, 5, GREEDY, np.zeros(15))
    assert core.frame(hiddens(1)[0], 5, GREEDY, np.zeros(15)).shape == (15,)


def test_tables_of_another_model_are_refused(wide: tuple[Bundle, Predictor], bundle: Bundle) -> None:
    with pytest.raises(BundleError, match=r"needs \(codes, 64\)"):
        RUNTIME.load_predictor(wide[0], bundle.artifact("predictor"), ONE)


@pytest.mark.parametrize("other", [os.link, os.symlink])
def test_files_with_a_second_name_are_loaded_as_well(bundle: Bundle, tmp_path: Path, other: Callable[..., None]) -> None:
    """Installers link the files of a package to their cache."""
    shutil.copytree(bundle.root, tmp_path / "linked", copy_function=lambda a, b: other(os.path.realpath(a), b))
    linked = load(open_bundle(tmp_path / "linked"))
    wanted = load(bundle)
    for i, hidden in enumerate(hiddens(4)):
        np.testing.assert_array_equal(*(core.frame(hidden, i, GREEDY, np.zeros(15)) for core in (linked, wanted)))


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_packed_weights_are_the_dequantised_network(checkpoint: Checkpoint, tmp_path: Path, weights: str) -> None:
    from ouzel.runtimes.onnxruntime.quantize import dequantize, quantize, weight_format

    bundle = ar_case.nano_bundle(tmp_path / weights, checkpoint, weights)
    network = ar_case.predictor(checkpoint)
    for name, parameter in network.named_parameters():
        if parameter.ndim == 2 and name not in ("stack.cos", "stack.sin"):
            bits = weight_format(weights).bits_of(name)
            rounded = dequantize(*quantize(parameter.numpy().T, bits, 64), bits)[:, : parameter.shape[0]]
            parameter.copy_(torch.tensor(rounded).t())
    core = load(bundle)
    for i, hidden in enumerate(hiddens(8)):
        core.frame(hidden, i, GREEDY, np.zeros(15))
        _, logits = eager_frame(network, bundle, hidden, i, GREEDY, np.zeros(15))
        # The kernel rounds activations to 8 bits: the first code is within that error of the best one.
        chosen = logits[0][core._codes[0, 0]]
        assert logits[0].max() - chosen < 0.1 * logits[0].std()
