"""The code predictor on ExecuTorch: the codes of torch, greedy and sampled, and nothing that outlives a frame."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import executorch_case
from ouzel.adapters import PredictorCore, SubtalkerSampling
from ouzel.errors import BundleError, SynthesisError
from ouzel.runtimes.executorch import RUNTIME
from ouzel.runtimes.executorch.predictor import ExecuTorchPredictor
from test_ort_predictor import eager_frame, hiddens

torch.set_num_threads(1)
GREEDY = SubtalkerSampling(do_sample=False)


def load(weights: str = "fp32") -> ExecuTorchPredictor:
    bundle = executorch_case.bundle("predictor", weights)
    return RUNTIME.load_predictor(bundle, bundle.artifact("predictor"), executorch_case.ONE)


@pytest.fixture(scope="module")
def core() -> ExecuTorchPredictor:
    return load()


@pytest.mark.parametrize("sampling", [GREEDY, SubtalkerSampling(temperature=0), SubtalkerSampling(), SubtalkerSampling(top_k=0)])
def test_codes_are_those_of_torch(core, sampling):
    network, bundle = executorch_case.network("predictor"), executorch_case.bundle("predictor")
    assert isinstance(core, PredictorCore)
    for i, hidden in enumerate(hiddens(6)):
        uniforms = np.random.default_rng(i).random(15)
        wanted, _ = eager_frame(network, bundle, hidden, 40 + i, sampling, uniforms)
        got = core.frame(hidden, 40 + i, sampling, uniforms)
        assert got.dtype == np.int64
        assert got.tolist() == wanted


def test_frames_leave_nothing_behind(core):
    """What is not finite in one frame lies in the buffers during the next, and is not read."""
    (first, second), uniforms = hiddens(2), np.random.default_rng(0).random(15)
    alone = core.frame(first, 5, SubtalkerSampling(), uniforms)
    with pytest.raises(SynthesisError, match="not finite"):
        core.frame(np.full_like(first, np.nan), 5, GREEDY, uniforms)
    core.frame(second, 77, GREEDY, uniforms)
    np.testing.assert_array_equal(alone, core.frame(first, 5, SubtalkerSampling(), uniforms))


def test_tables_of_another_model_are_refused(tmp_path):
    import shutil

    from ouzel.bundle import open_bundle

    bundle = executorch_case.bundle("predictor")
    shutil.copytree(bundle.root, tmp_path / "other")
    np.save(tmp_path / "other" / "tables" / "residual.npy", np.zeros((15, 256, 63), np.float32))
    other = open_bundle(tmp_path / "other", verify=False)
    with pytest.raises(BundleError, match=r"needs \(codes, 64\)"):
        RUNTIME.load_predictor(other, other.artifact("predictor"), executorch_case.ONE)


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_codes_of_fewer_bits_are_good_ones(weights):
    """Of the first codebook, whose context is exact: the code taken is within the rounding of the best."""
    core, network, bundle = load(weights), executorch_case.network("predictor"), executorch_case.bundle("predictor")
    for i, hidden in enumerate(hiddens(8)):
        code = core.frame(hidden, i, GREEDY, np.zeros(15))[0]
        _, logits = eager_frame(network, bundle, hidden, i, GREEDY, np.zeros(15))
        assert logits[0].max() - logits[0][code] < {"int8": 0.1, "int4": 0.8}[weights] * logits[0].std()
