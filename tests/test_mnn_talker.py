"""The talker on MNN: equal to torch for any split, buffers written in place, states that do not touch one another."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ar_case
from mnn_case import ONE
from ouzel.adapters import TalkerCore
from ouzel.bundle import Bundle
from ouzel.errors import SynthesisError, UsageError
from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.network.talker import Talker
from ouzel.runtimes.base import Runtime, StageOptions
from ouzel.runtimes.mnn import RUNTIME
from ouzel.runtimes.mnn.talker import MnnTalker
from test_ort_talker import eager, rows, run


@pytest.fixture(scope="module")
def checkpoint(mnn_checkpoint: Checkpoint) -> Checkpoint:
    return mnn_checkpoint


@pytest.fixture(scope="module")
def network(checkpoint: Checkpoint) -> Talker:
    return ar_case.talker(checkpoint)


@pytest.fixture(scope="module")
def bundle(mnn_bundle: Callable[[str], Bundle]) -> Bundle:
    return mnn_bundle("fp32")


@pytest.fixture(scope="module")
def core(bundle: Bundle) -> MnnTalker:
    return RUNTIME.load_talker(bundle, bundle.artifact("talker"), ONE)


# 100 rows are more than one run takes.
@pytest.mark.parametrize("split", [(30,), (7, 1, 1, 1, 20), (1,) * 30, (10, 5, 15), (100, 1, 1)])
def test_mnn_agrees_with_torch_for_any_split(core: MnnTalker, network: Talker, split: tuple[int, ...]) -> None:
    given = rows(sum(split))
    for got, wanted in zip(run(core, given, split), eager(network, given, split), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-4)


def test_the_protocols_hold(core: MnnTalker) -> None:
    assert isinstance(core, TalkerCore)
    assert isinstance(RUNTIME, Runtime)
    assert (core.hidden_size, core.vocab_size, core.max_positions) == (64, 3072, ar_case.POSITIONS)


def test_a_step_writes_its_own_rows_and_nothing_else(core: MnnTalker) -> None:
    state = core.start(1)
    core.forward(state, rows(5))
    buffers = state.cache.rows
    before = [buffer.array.copy() for buffer in buffers]
    assert all(b[:, :5].any() and not b[:, 5:].any() for b in before)
    core.forward(state, rows(1, seed=1))
    assert state.cache.rows is buffers
    for buffer, old in zip(buffers, before, strict=True):
        np.testing.assert_array_equal(buffer.array[:, :5], old[:, :5])
        assert buffer.array[:, 5].any()
        assert not buffer.array[:, 6:].any()


def test_the_graph_reads_the_buffers_where_they_lie(core: MnnTalker) -> None:
    """A row changed behind MNN's back is seen by the next step: there is no copy that could be stale."""
    given = rows(9)
    states = [core.start(1) for _ in range(2)]
    for state in states:
        core.forward(state, given[:8])
    states[1].cache.rows[0].array[:, 3] *= 2
    one, two = (core.forward(state, given[8:])[0] for state in states)
    assert np.abs(one - two).max() > 1e-3


def test_growth_changes_nothing(core: MnnTalker, network: Talker) -> None:
    given, split = rows(530), (250,) + (1,) * 280
    for got, wanted in zip(run(core, given, split), eager(network, given, split), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-4)


def test_buffers_grow_by_one_grain_at_a_time(core: MnnTalker) -> None:
    state, seen = core.start(600), []
    for _ in range(7):
        core.forward(state, rows(100))
        seen.append(state.cache.capacity)
    assert seen == [256, 256, 512, 512, 512, 700, 700]


def test_interleaved_states_do_not_touch_each_other(core: MnnTalker) -> None:
    first, second = rows(9, seed=1), rows(14, seed=2)
    alone = run(core, first, (6, 1, 1, 1))[-1], run(core, second, (11, 1, 1, 1))[-1]
    one, two = core.start(20), core.start(20)
    core.forward(one, first[:6])
    core.forward(two, second[:11])
    for i in range(3):
        got = core.forward(one, first[6 + i : 7 + i]), core.forward(two, second[11 + i : 12 + i])
    np.testing.assert_array_equal([np.concatenate(g)[:64] for g in got], [a[:64] for a in alone])


def test_a_state_that_was_given_up_leaves_nothing_behind(core: MnnTalker) -> None:
    given, split = rows(12), (10, 1, 1)
    fresh = run(core, given, split)
    spoilt = core.start(1)
    core.forward(spoilt, given[:3])
    with pytest.raises(SynthesisError, match="not finite"):
        core.forward(spoilt, np.full((40, 64), np.nan, np.float32))
    assert spoilt.length == 3
    np.testing.assert_allclose(core.forward(spoilt, given[3:])[0], core.forward(core.start(1), given)[0], atol=1e-5)
    np.testing.assert_array_equal(run(core, given, split), fresh)


def test_results_are_fresh_arrays(core: MnnTalker) -> None:
    state = core.start(8)
    hidden, logits = core.forward(state, rows(3))
    kept = hidden.copy(), logits.copy()
    core.forward(state, rows(1, seed=5))
    np.testing.assert_array_equal(hidden, kept[0])
    np.testing.assert_array_equal(logits, kept[1])


def test_the_context_is_a_limit_with_numbers(core: MnnTalker) -> None:
    state = core.start(ar_case.POSITIONS)
    core.forward(state, rows(ar_case.POSITIONS))
    with pytest.raises(SynthesisError, match="700 rows is full; 701"):
        core.forward(state, rows(1))


@pytest.mark.parametrize("shape", [(3, 63), (0, 64), (64,)])
def test_rows_of_another_shape_are_refused(core: MnnTalker, shape: tuple[int, ...]) -> None:
    with pytest.raises(SynthesisError, match="takes rows of shape"):
        core.forward(core.start(4), np.zeros(shape, np.float32))


def test_another_thread_may_run_it(core: MnnTalker) -> None:
    split = (5,) + (1,) * 10
    wanted, got = run(core, rows(15), split), []
    thread = threading.Thread(target=lambda: got.extend(run(core, rows(15), split)))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(got, wanted)


def test_low_precision_is_float32_where_there_are_no_half_floats(bundle: Bundle, core: MnnTalker) -> None:
    low = RUNTIME.load_talker(bundle, bundle.artifact("talker"), StageOptions(threads=1, precision="low"))
    np.testing.assert_allclose(run(low, rows(6), (5, 1)), run(core, rows(6), (5, 1)), atol=0.1)


def test_two_threads_agree_with_one(bundle: Bundle, core: MnnTalker, tmp_path: Path) -> None:
    """In a process of its own: one has one number of threads."""
    code = f"""
import numpy as np
from mnn_case import *
from test_ort_talker import rows, run
bundle = open_bundle({str(bundle.root)!r})
core = RUNTIME.load_talker(bundle, bundle.artifact("talker"), StageOptions(threads=2))
np.save({str(tmp_path / "two.npy")!r}, run(core, rows(8), (5, 1, 1, 1)))
"""
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, check=True, timeout=300)
    np.testing.assert_allclose(np.load(tmp_path / "two.npy"), run(core, rows(8), (5, 1, 1, 1)), atol=1e-4)


def test_another_number_of_threads_is_refused_while_modules_live(bundle: Bundle, core: MnnTalker) -> None:
    with pytest.raises(UsageError, match=r"one number of threads, 1 at present, not 2 too"):
        RUNTIME.load_talker(bundle, bundle.artifact("talker"), replace(ONE, threads=2))


@pytest.mark.parametrize(("weights", "limit"), [("int8", 0.15), ("int4", 0.6)])
def test_quantised_weights_stay_near(mnn_bundle: Callable[[str], Bundle], network: Talker, weights: str, limit: float) -> None:
    """Root mean square of the logits' error, as a part of their spread: random weights have no outliers to hide behind."""
    bundle = mnn_bundle(weights)
    core = RUNTIME.load_talker(bundle, bundle.artifact("talker"), ONE)
    got, wanted = (
        np.stack([vector[64:] for vector in found])
        for found in (run(core, rows(20), (10,) + (1,) * 10), eager(network, rows(20), (10,) + (1,) * 10))
    )
    assert 0 < np.sqrt(np.mean((got - wanted) ** 2)) / wanted.std() < limit
