"""The talker: torch against the contract, ONNX Runtime against torch, and what states may not do to one another."""

from __future__ import annotations

import gc
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

import ar_case
from ouzel.adapters import TalkerCore
from ouzel.bundle import Bundle
from ouzel.errors import BundleError, SynthesisError, UsageError
from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.network.talker import Talker
from ouzel.runtimes.base import Runtime, StageOptions
from ouzel.runtimes.onnxruntime import RUNTIME
from ouzel.runtimes.onnxruntime.talker import OrtTalker

ONE = StageOptions(threads=1)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return ar_case.nano_checkpoint(tmp_path_factory.mktemp("talker") / "checkpoint")


@pytest.fixture(scope="module")
def network(checkpoint: Checkpoint) -> Talker:
    return ar_case.talker(checkpoint)


@pytest.fixture(scope="module")
def bundle(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return ar_case.nano_bundle(tmp_path_factory.mktemp("talker") / "fp32", checkpoint, "fp32")


@pytest.fixture
def core(bundle: Bundle) -> OrtTalker:
    return RUNTIME.load_talker(bundle, bundle.artifact("talker"), ONE)


def rows(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, 64)).astype(np.float32)


def run(core: TalkerCore, given: np.ndarray, split: tuple[int, ...], positions: int = 1) -> list[np.ndarray]:
    """Hidden and logits after each piece of `given`, as one vector a piece."""
    state = core.start(positions)
    return [np.concatenate(core.forward(state, piece)) for piece in np.split(given, np.cumsum(split)[:-1])]


def eager(network: Talker, given: np.ndarray, split: tuple[int, ...]) -> list[np.ndarray]:
    caches, length, out = network.caches(len(given)), 0, []
    for piece in np.split(given, np.cumsum(split)[:-1]):
        length += len(piece)
        with torch.no_grad():
            hidden, logits, *_ = network(torch.tensor(piece)[None], torch.tensor([length], dtype=torch.int32), *caches)
        out.append(np.concatenate([hidden[0], logits[0]]))
    return out


def test_the_network_follows_the_contract(checkpoint: Checkpoint, network: Talker) -> None:
    given = rows(20)
    weights = checkpoint.talker()
    hidden = ar_case.slow_transformer(checkpoint.config.talker, weights, given)
    logits = hidden @ weights["codec_head.weight"].numpy().T.astype(np.float64)
    split = (12, 1, 1, 6)
    ends = np.cumsum(split) - 1
    for end, got in zip(ends, eager(network, given, split), strict=True):
        np.testing.assert_allclose(got, np.concatenate([hidden[end], logits[end]]), atol=1e-4)


@pytest.mark.parametrize("split", [(30,), (7, 1, 1, 1, 20), (1,) * 30, (10, 5, 15)])
def test_onnx_runtime_agrees_with_torch_for_any_split(core: OrtTalker, network: Talker, split: tuple[int, ...]) -> None:
    given = rows(30)
    for got, wanted in zip(run(core, given, split), eager(network, given, split), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-4)


def test_the_protocols_hold(core: OrtTalker) -> None:
    assert isinstance(core, TalkerCore)
    assert isinstance(RUNTIME, Runtime)
    assert (core.hidden_size, core.vocab_size, core.max_positions) == (64, 3072, ar_case.POSITIONS)
    assert RUNTIME.status().available


def test_keys_and_values_are_appended_in_place(core: OrtTalker) -> None:
    state = core.start(1)
    array = state.buffers.array
    core.forward(state, rows(5))
    before = array.copy()
    assert np.abs(before[:, :, :, :5]).min(-1).max() > 0
    assert not before[:, :, :, 5:].any()
    core.forward(state, rows(1, seed=1))
    assert state.buffers.array is array
    np.testing.assert_array_equal(array[:, :, :, :5], before[:, :, :, :5])
    assert array[:, :, :, 5].any()
    assert not array[:, :, :, 6:].any()


def test_attention_is_left_no_scaling(bundle: Bundle, network: Talker) -> None:
    """The operator's fast product of one query with all keys is for scale 1 only (docs/talker.md)."""
    graph = onnx.load(bundle.path(bundle.artifact("talker").files[0]), load_external_data=False).graph
    nodes = [node for node in graph.node if node.op_type == "GroupQueryAttention"]
    scales = [attribute.f for node in nodes for attribute in node.attribute if attribute.name == "scale"]
    assert scales == [1.0] * network.spec["layers"]


def test_growth_changes_nothing(core: OrtTalker) -> None:
    given, split = rows(530), (250,) + (1,) * 280
    small, large = run(core, given, split), run(core, given, split, positions=530)
    np.testing.assert_array_equal(small, large)


def test_stale_rows_of_a_reused_buffer_are_never_read(core: OrtTalker) -> None:
    given, split = rows(12), (10, 1, 1)
    fresh = run(core, given, split)
    gc.collect()
    assert core._pool
    for buffers in core._pool:
        buffers.array.fill(np.nan)
    np.testing.assert_array_equal(run(core, given, split), fresh)


def test_interleaved_states_do_not_touch_each_other(core: OrtTalker) -> None:
    first, second = rows(9, seed=1), rows(14, seed=2)
    alone = run(core, first, (6, 1, 1, 1))[-1], run(core, second, (11, 1, 1, 1))[-1]
    one, two = core.start(20), core.start(20)
    assert one.buffers is not two.buffers
    core.forward(one, first[:6])
    core.forward(two, second[:11])
    for i in range(3):
        got = core.forward(one, first[6 + i : 7 + i]), core.forward(two, second[11 + i : 12 + i])
    np.testing.assert_array_equal([np.concatenate(g)[:64] for g in got], [a[:64] for a in alone])


def test_results_are_fresh_arrays(core: OrtTalker) -> None:
    state = core.start(8)
    hidden, logits = core.forward(state, rows(3))
    kept = hidden.copy(), logits.copy()
    core.forward(state, rows(1, seed=5))
    np.testing.assert_array_equal(hidden, kept[0])
    np.testing.assert_array_equal(logits, kept[1])


def test_dropped_states_leave_a_bounded_pool(core: OrtTalker) -> None:
    states = [core.start(300) for _ in range(6)]
    for state in states:
        core.forward(state, rows(2))
    del states, state
    gc.collect()
    assert len(core._pool) <= 2
    again = core.start(300)
    assert len(core._pool) == 1
    assert again.length == 0


def test_the_context_is_a_limit_with_numbers(core: OrtTalker) -> None:
    state = core.start(ar_case.POSITIONS)
    core.forward(state, rows(ar_case.POSITIONS))
    with pytest.raises(SynthesisError, match="700 rows is full; 701"):
        core.forward(state, rows(1))


def test_rows_of_another_width_are_refused(core: OrtTalker) -> None:
    with pytest.raises(SynthesisError, match="not \\(3, 63\\)"):
        core.forward(core.start(4), np.zeros((3, 63), np.float32))


def test_two_cores_run_on_two_threads(bundle: Bundle) -> None:
    cores = [RUNTIME.load_talker(bundle, bundle.artifact("talker"), StageOptions(threads=2)) for _ in range(2)]
    split = (5,) + (1,) * 25
    wanted = run(cores[0], rows(30), split)
    got: dict[int, list[np.ndarray]] = {}

    def work(i: int) -> None:
        got[i] = run(cores[i], rows(30), split)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(2):
        np.testing.assert_array_equal(got[i], wanted)


def test_bad_placements_and_bundles_are_named(bundle: Bundle, tmp_path: Path) -> None:
    artifact = bundle.artifact("talker")
    with pytest.raises(UsageError, match=r"'cuda'.*Valid choices: cpu"):
        RUNTIME.load_talker(bundle, artifact, StageOptions(device="cuda"))
    with pytest.raises(UsageError, match=r"'int4'.*Valid choices: auto, fp32"):
        RUNTIME.load_talker(bundle, artifact, StageOptions(precision="int4"))
    with pytest.raises(UsageError, match="threads must be 0"):
        RUNTIME.load_talker(bundle, artifact, StageOptions(threads=-1))
    with pytest.raises(BundleError, match="'layers' in the manifest is 0"):
        RUNTIME.load_talker(bundle, replace(artifact, meta={**artifact.meta, "layers": 0}), ONE)
    broken = replace(bundle, root=tmp_path)
    with pytest.raises(BundleError, match="does not exist"):
        RUNTIME.load_talker(broken, artifact, ONE)
    (tmp_path / "onnxruntime").mkdir()
    (tmp_path / "onnxruntime" / "talker.onnx").write_bytes(b"not a graph")
    with pytest.raises(BundleError, match="cannot load"):
        RUNTIME.load_talker(broken, artifact, ONE)


def test_a_graph_of_another_version_is_refused_at_load(bundle: Bundle) -> None:
    talker, predictor = bundle.artifact("talker"), bundle.artifact("predictor")
    with pytest.raises(BundleError, match=r"not what this version of ouzel expects.*Convert the bundle again"):
        RUNTIME.load_talker(bundle, replace(talker, files=predictor.files), ONE)
    with pytest.raises(BundleError, match="not what this version of ouzel expects"):
        RUNTIME.load_predictor(bundle, replace(predictor, files=talker.files), ONE)
