"""The code predictor on MNN: the codes of torch, nothing left from one frame to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import ar_case
import mnn_case
from mnn_case import ONE
from ouzel.adapters import PredictorCore, SubtalkerSampling
from ouzel.bundle import Bundle
from ouzel.errors import BundleError, SynthesisError
from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.network.predictor import Predictor
from ouzel.runtimes.mnn import RUNTIME
from ouzel.runtimes.mnn.predictor import MnnPredictor
from test_ort_predictor import GREEDY, WIDTH, eager_frame, hiddens


@pytest.fixture(scope="module")
def checkpoint(mnn_checkpoint: Checkpoint) -> Checkpoint:
    return mnn_checkpoint


@pytest.fixture(scope="module")
def bundle(mnn_bundle: Callable[[str], Bundle]) -> Bundle:
    return mnn_bundle("fp32")


@pytest.fixture(scope="module")
def wide(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> tuple[Bundle, Predictor]:
    draw = np.random.default_rng(3)
    tables = draw.standard_normal((3072, WIDTH)).astype(np.float32), draw.standard_normal((15, 256, WIDTH)).astype(np.float32)
    made = mnn_case.networks(checkpoint)
    made.predictor, _ = ar_case.wide_predictor(checkpoint, WIDTH)
    return mnn_case.write_bundle(tmp_path_factory.mktemp("mnn-predictor") / "wide", made, tables, "fp32"), made.predictor


def load(bundle: Bundle) -> MnnPredictor:
    return RUNTIME.load_predictor(bundle, bundle.artifact("predictor"), ONE)


@pytest.fixture(scope="module")
def core(bundle: Bundle) -> MnnPredictor:
    return load(bundle)


@pytest.mark.parametrize("sampling", [GREEDY, SubtalkerSampling(temperature=0), SubtalkerSampling(), SubtalkerSampling(top_k=0)])
def test_codes_are_those_of_torch(
    core: MnnPredictor, bundle: Bundle, checkpoint: Checkpoint, sampling: SubtalkerSampling
) -> None:
    network = ar_case.predictor(checkpoint)
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


def test_frames_leave_nothing_behind(core: MnnPredictor) -> None:
    first, second = hiddens(2)
    uniforms = np.random.default_rng(0).random(15)
    alone = core.frame(first, 5, SubtalkerSampling(), uniforms)
    core.frame(second, 77, GREEDY, uniforms)
    again = core.frame(first, 5, SubtalkerSampling(), uniforms)
    np.testing.assert_array_equal(alone, again)
    assert alone is not again


def test_what_is_not_finite_is_an_error_of_that_frame_only(core: MnnPredictor) -> None:
    """Keys that are no numbers would reach later frames: a masked row still enters with weight 0."""
    good = core.frame(hiddens(1)[0], 5, GREEDY, np.zeros(15))
    hidden = hiddens(1)[0]
    hidden[5] = np.nan
    with pytest.raises(SynthesisError, match="not finite"):
        core.frame(hidden, 5, GREEDY, np.zeros(15))
    np.testing.assert_array_equal(core.frame(hiddens(1)[0], 5, GREEDY, np.zeros(15)), good)


def test_tables_of_another_model_are_refused(wide: tuple[Bundle, Predictor], bundle: Bundle) -> None:
    with pytest.raises(BundleError, match=r"needs \(codes, 64\)"):
        RUNTIME.load_predictor(wide[0], bundle.artifact("predictor"), ONE)


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_quantised_weights_choose_among_the_best(
    mnn_bundle: Callable[[str], Bundle], checkpoint: Checkpoint, weights: str
) -> None:
    bundle = mnn_bundle(weights)
    core, network = load(bundle), ar_case.predictor(checkpoint)
    lost = []
    for i, hidden in enumerate(hiddens(8)):
        code = core.frame(hidden, i, GREEDY, np.zeros(15))[0]
        _, logits = eager_frame(network, bundle, hidden, i, GREEDY, np.zeros(15))
        lost.append((logits[0].max() - logits[0][code]) / logits[0].std())
    assert np.mean(lost) < {"int8": 0.05, "int4": 0.7}[weights]


def test_low_precision_keeps_the_weights_packed(mnn_bundle: Callable[[str], Bundle]) -> None:
    """Rows of the low one are rounded to 8 bits: its logits are others, of the same file."""
    bundle = mnn_bundle("int8")
    hidden = hiddens(1)[0]
    found = []
    for precision in ("auto", "low"):
        core = RUNTIME.load_predictor(bundle, bundle.artifact("predictor"), replace(ONE, precision=precision))
        state = core._stack.run(core._cache, np.stack([hidden, hidden]))
        found.append(core._heads[0].run(state)[0].read()[0].copy())
    assert 0 < np.abs(found[0] - found[1]).max() < 0.2 * found[0].std()
