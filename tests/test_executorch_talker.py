"""The talker on ExecuTorch: parity with torch for any split, states that do not mix, weights of 8 and 4 bits."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch

import ar_case
import executorch_case
from ouzel.adapters import TalkerCore
from ouzel.errors import SynthesisError
from ouzel.runtimes.base import Runtime
from ouzel.runtimes.executorch import RUNTIME
from ouzel.runtimes.executorch.talker import ExecuTorchTalker

torch.set_num_threads(1)


def load(weights: str = "fp32") -> ExecuTorchTalker:
    bundle = executorch_case.bundle("talker", weights)
    return RUNTIME.load_talker(bundle, bundle.artifact("talker"), executorch_case.ONE)


@pytest.fixture(scope="module")
def core() -> ExecuTorchTalker:
    return load()


def rows(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, 64)).astype(np.float32)


def run(core: ExecuTorchTalker, given: np.ndarray, split: tuple[int, ...]) -> list[np.ndarray]:
    """Hidden and logits after each piece of `given`, as one vector a piece."""
    state = core.start(1)
    return [np.concatenate(core.forward(state, piece)) for piece in np.split(given, np.cumsum(split)[:-1])]


def eager(given: np.ndarray, split: tuple[int, ...]) -> list[np.ndarray]:
    network = executorch_case.network("talker")
    caches, length, out = network.caches(len(given)), 0, []
    for piece in np.split(given, np.cumsum(split)[:-1]):
        length += len(piece)
        with torch.no_grad():
            hidden, logits, *_ = network(torch.tensor(piece)[None], torch.tensor([length], dtype=torch.int32), *caches)
        out.append(np.concatenate([hidden[0], logits[0]]))
    return out


@pytest.mark.parametrize("split", [(30,), (7, 1, 1, 1, 20), (1,) * 30, (300, 1, 5), (32, 33, 1)])
def test_it_agrees_with_torch_for_any_split(core, split):
    """More rows than the program's bound of 32 run in pieces."""
    given = rows(sum(split))
    for got, wanted in zip(run(core, given, split), eager(given, split), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-4)


def test_the_protocols_hold(core):
    assert isinstance(core, TalkerCore)
    assert isinstance(RUNTIME, Runtime)
    assert (core.hidden_size, core.vocab_size, core.max_positions) == (64, 3072, ar_case.POSITIONS)
    status = RUNTIME.status()
    assert status.available
    assert "XnnpackBackend" in status.detail


def test_keys_and_values_are_written_in_place_and_nowhere_else(core):
    state, other = core.start(1), core.start(1)
    core.forward(other, rows(9, seed=2))
    core.forward(state, rows(5))
    before = [tensor.clone() for tensor in state.caches]
    core.forward(state, rows(1, seed=1))
    for old, new in zip(before, state.caches, strict=True):
        assert torch.equal(old[:, :5], new[:, :5])
        assert old[:, :5].abs().amin() > 0
        assert new[:, 5].abs().amin() > 0
        assert not old[:, 5:].any()
        assert not new[:, 6:].any()


def test_interleaved_states_do_not_touch_each_other(core):
    first, second = rows(9, seed=1), rows(14, seed=2)
    alone = run(core, first, (6, 1, 1, 1)), run(core, second, (11, 1, 1, 1))
    one, two = core.start(20), core.start(20)
    core.forward(one, first[:6])
    core.forward(two, second[:11])
    for i in range(3):
        got = core.forward(one, first[6 + i : 7 + i]), core.forward(two, second[11 + i : 12 + i])
        for mine, due in zip(got, alone, strict=True):
            np.testing.assert_array_equal(np.concatenate(mine), due[1 + i])


def test_a_dropped_state_leaves_nothing_behind(core):
    fresh = run(core, rows(12), (10, 1, 1))
    dropped = core.start(1)
    core.forward(dropped, np.full((40, 64), np.nan, np.float32))
    del dropped
    gc.collect()
    np.testing.assert_array_equal(run(core, rows(12), (10, 1, 1)), fresh)


def test_results_are_fresh_arrays(core):
    state = core.start(8)
    hidden, logits = core.forward(state, rows(3))
    kept = hidden.copy(), logits.copy()
    core.forward(state, rows(1, seed=5))
    np.testing.assert_array_equal(hidden, kept[0])
    np.testing.assert_array_equal(logits, kept[1])


def test_the_context_is_a_limit_with_numbers(core):
    state = core.start(ar_case.POSITIONS)
    core.forward(state, rows(ar_case.POSITIONS))
    with pytest.raises(SynthesisError, match="700 rows is full; 701"):
        core.forward(state, rows(1))
    assert state.length == ar_case.POSITIONS


@pytest.mark.parametrize("shape", [(3, 63), (0, 64), (64,)])
def test_rows_of_another_shape_are_refused(core, shape):
    with pytest.raises(SynthesisError, match="takes rows of shape"):
        core.forward(core.start(4), np.zeros(shape, np.float32))


def quantised(weights: str, given: np.ndarray, split: tuple[int, ...]) -> list[np.ndarray]:
    """What torch makes of the module that was lowered, its weights and activations rounded by torchao."""
    from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401  registers the operators

    from ouzel.runtimes.executorch.quantize import quantize
    from ouzel.runtimes.executorch.transformer import Transformer

    network, length, out = executorch_case.network("talker"), 0, []
    module = Transformer(network.stack, head=network.head).eval().requires_grad_(False)
    quantize(module, weights)
    caches = load(weights).start(1).caches
    for piece in np.split(given, np.cumsum(split)[:-1]):
        with torch.no_grad():
            hidden, logits = module(torch.tensor(piece)[None], torch.arange(length, length + len(piece)), *caches)
        length += len(piece)
        out.append(np.concatenate([hidden[0], logits[0]]))
    return out


@pytest.mark.parametrize(("weights", "least", "saved"), [("int8", 0.999, 0.7), ("int4", 0.9, 0.8)])
def test_fewer_bits_make_a_smaller_program_that_computes_what_torchao_does(core, weights, least, saved):
    """Against fp32 random weights lose more than trained ones: with 4 bits some 9 % a product."""
    given, split = rows(40), (20,) + (1,) * 20
    exact, rounded = np.stack(run(core, given, split)), np.stack(run(load(weights), given, split))
    alike = [np.corrcoef(a, b)[0, 1] for a, b in zip(rounded, quantised(weights, given, split), strict=True)]
    assert min(alike) > 0.999
    assert min(np.corrcoef(a, b)[0, 1] for a, b in zip(exact, rounded, strict=True)) > least
    sizes = [executorch_case.bundle("talker", w).path("executorch/talker.pte").stat().st_size for w in ("fp32", weights)]
    products = sum(p.numel() for p in executorch_case.network("talker").stack.layers.parameters() if p.dim() == 2)
    assert sizes[0] - sizes[1] > saved * 4 * products  # the head, which is most of this network, stays as it is
