"""The talker on llama.cpp against torch, and what states, interruptions and bad input may not do."""

from __future__ import annotations

import copy
import gc
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ar_case
import llama_case
from ouzel.adapters import TalkerCore
from ouzel.bundle import Bundle
from ouzel.errors import BundleError, SynthesisError, UsageError
from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.network.layers import Linear
from ouzel.models.qwen3_tts.network.talker import Talker
from ouzel.runtimes.base import Runtime, StageOptions
from ouzel.runtimes.llama_cpp import RUNTIME
from ouzel.runtimes.llama_cpp.talker import LlamaTalker
from test_ort_talker import eager, rows, run

ONE = StageOptions(threads=1)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return ar_case.nano_checkpoint(tmp_path_factory.mktemp("talker") / "checkpoint")


@pytest.fixture(scope="module")
def network(checkpoint: Checkpoint) -> Talker:
    return ar_case.talker(checkpoint)


@pytest.fixture(scope="module")
def bundle(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return llama_case.nano_bundle(tmp_path_factory.mktemp("talker") / "fp32", checkpoint, "fp32")


@pytest.fixture
def core(bundle: Bundle) -> LlamaTalker:
    return RUNTIME.load_talker(bundle, bundle.artifact("talker"), ONE)


def test_the_protocols_hold(core: LlamaTalker) -> None:
    assert isinstance(core, TalkerCore)
    assert isinstance(RUNTIME, Runtime)
    assert (core.hidden_size, core.vocab_size, core.max_positions) == (64, 3072, ar_case.POSITIONS)


@pytest.mark.parametrize("split", [(30,), (7, 1, 1, 1, 20), (1,) * 30, (10, 5, 15)])
def test_it_agrees_with_torch_for_any_split(core: LlamaTalker, network: Talker, split: tuple[int, ...]) -> None:
    given = rows(30)
    for got, wanted in zip(run(core, given, split), eager(network, given, split), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-4)


def test_prompts_longer_than_a_batch_agree_with_torch(core: LlamaTalker, network: Talker) -> None:
    given = rows(200)
    np.testing.assert_allclose(run(core, given, (199, 1)), eager(network, given, (199, 1)), atol=1e-4)


@pytest.mark.parametrize(("weights", "most"), [("f16", 0.004), ("q8_0", 0.04), ("q4_0", 0.04)])
def test_small_weights_are_computed_with(checkpoint: Checkpoint, tmp_path: Path, weights: str, most: float) -> None:
    """Against the same rounded weights as float32, what is left is that activations are rounded too."""
    bundle = llama_case.nano_bundle(tmp_path / weights, checkpoint, weights)
    same = llama_case.unpacked(bundle, tmp_path / "unpacked")
    artifact = bundle.artifact("talker")
    got, wanted = (run(LlamaTalker(made, artifact, ONE), rows(30), (29, 1))[-1] for made in (bundle, same))
    assert 0 < llama_case.noise(got, wanted) < most


def test_growth_changes_nothing(core: LlamaTalker) -> None:
    given, split = rows(530), (250,) + (1,) * 280
    small, large = run(core, given, split), run(core, given, split, positions=530)
    np.testing.assert_array_equal(small, large)


def test_a_reused_context_shows_nothing_of_its_past(core: LlamaTalker) -> None:
    given, split = rows(12), (10, 1, 1)
    fresh = run(core, given, split)
    run(core, rows(200, seed=3), (200,))
    gc.collect()
    assert core._pool
    np.testing.assert_array_equal(run(core, given, split), fresh)
    assert len(core._pool) <= 2


def test_interleaved_states_do_not_touch_each_other(core: LlamaTalker) -> None:
    first, second = rows(9, seed=1), rows(14, seed=2)
    alone = run(core, first, (6, 1, 1, 1))[-1], run(core, second, (11, 1, 1, 1))[-1]
    one, two = core.start(20), core.start(20)
    assert one.context is not two.context
    core.forward(one, first[:6])
    core.forward(two, second[:11])
    for i in range(3):
        got = core.forward(one, first[6 + i : 7 + i]), core.forward(two, second[11 + i : 12 + i])
    np.testing.assert_array_equal([np.concatenate(g) for g in got], alone)


def test_results_are_fresh_arrays(core: LlamaTalker) -> None:
    state = core.start(8)
    hidden, logits = core.forward(state, rows(3))
    kept = hidden.copy(), logits.copy()
    core.forward(state, rows(1, seed=5))
    np.testing.assert_array_equal(hidden, kept[0])
    np.testing.assert_array_equal(logits, kept[1])


def test_the_context_is_a_limit_with_numbers(core: LlamaTalker) -> None:
    state = core.start(ar_case.POSITIONS)
    core.forward(state, rows(ar_case.POSITIONS))
    with pytest.raises(SynthesisError, match="700 rows is full; 701"):
        core.forward(state, rows(1))


@pytest.mark.parametrize("shape", [(3, 63), (0, 64), (2, 3, 64)])
def test_rows_of_another_shape_are_refused(core: LlamaTalker, shape: tuple[int, ...]) -> None:
    with pytest.raises(SynthesisError, match="takes rows of shape"):
        core.forward(core.start(4), np.zeros(shape, np.float32))


def test_an_interruption_leaves_the_state_as_it_was(core: LlamaTalker) -> None:
    """The switch is on from the start of the pass, as if another thread were quick; then in a race with one."""
    given = rows(300)
    wanted = run(core, given, (250, 50))
    state = core.start(300)
    assert np.array_equal(np.concatenate(core.forward(state, given[:250])), wanted[0])
    reset, core.switch.reset = core.switch.reset, lambda: None
    core.interrupt()
    with pytest.raises(SynthesisError, match="interrupted"):
        core.forward(state, given[250:])
    core.switch.reset = reset
    assert state.length == 250
    assert np.array_equal(np.concatenate(core.forward(state, given[250:])), wanted[1])


def test_another_thread_can_interrupt(core: LlamaTalker) -> None:
    over = threading.Event()

    def stop() -> None:
        while not over.wait(0.001):
            core.interrupt()

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        with pytest.raises(SynthesisError, match="interrupted"):
            [core.forward(core.start(600), rows(600)) for _ in range(200)]
    finally:
        over.set()
        thread.join()
    core.forward(core.start(5), rows(5))


def test_two_threads_compute_what_one_does(bundle: Bundle, core: LlamaTalker) -> None:
    split = (20,) + (1,) * 10
    two = RUNTIME.load_talker(bundle, bundle.artifact("talker"), StageOptions(threads=2))
    np.testing.assert_allclose(run(two, rows(30), split), run(core, rows(30), split), atol=1e-5)


def test_bad_placements_and_files_are_named(bundle: Bundle, tmp_path: Path) -> None:
    artifact = bundle.artifact("talker")
    with pytest.raises(UsageError, match=r"'cuda'.*Valid choices: cpu"):
        RUNTIME.load_talker(bundle, artifact, StageOptions(device="cuda"))
    with pytest.raises(UsageError, match=r"'q4_0'.*Valid choices: auto, fp32"):
        RUNTIME.load_talker(bundle, artifact, StageOptions(precision="q4_0"))
    with pytest.raises(UsageError, match="threads must be from 0"):
        RUNTIME.load_talker(bundle, artifact, StageOptions(threads=-1))
    with pytest.raises(BundleError, match="'layers' in the manifest is 0"):
        RUNTIME.load_talker(bundle, replace(artifact, meta={**artifact.meta, "layers": 0}), ONE)
    with pytest.raises(BundleError, match="another model: its block_count is 2, not 3"):
        RUNTIME.load_talker(bundle, replace(artifact, meta={**artifact.meta, "layers": 3}), ONE)
    with pytest.raises(BundleError, match="GGUF file of 'clip', not of a qwen3tts talker"):
        RUNTIME.load_talker(bundle, replace(artifact, files=bundle.artifact("predictor").files), ONE)
    broken = replace(bundle, root=tmp_path)
    with pytest.raises(BundleError, match="cannot be read"):
        RUNTIME.load_talker(broken, artifact, ONE)
    (tmp_path / "llama_cpp").mkdir()
    (tmp_path / "llama_cpp" / "talker.gguf").write_bytes(b"not a model")
    with pytest.raises(BundleError, match="not a GGUF file"):
        RUNTIME.load_talker(broken, artifact, ONE)


def test_a_talker_with_fewer_ids(network: Talker, tmp_path: Path) -> None:
    """llama.cpp's has 3072 always; the embedded voice has fewer."""
    small = copy.deepcopy(network)
    small.head = Linear(network.head.weight.t()[:1280])
    small.spec = {**network.spec, "vocab_size": 1280}
    tables = (np.zeros((1280, 64), np.float32), np.zeros((15, 256, 64), np.float32))
    made = llama_case.write_bundle(tmp_path / "small", tables, "fp32", talker=small)
    core = RUNTIME.load_talker(made, made.artifact("talker"), ONE)
    assert core.vocab_size == 1280
    np.testing.assert_allclose(run(core, rows(9), (8, 1)), eager(small, rows(9), (8, 1)), atol=1e-4)


def test_a_talker_that_llama_cpp_cannot_run_is_refused_when_converting(network: Talker, tmp_path: Path) -> None:
    from ouzel.runtimes.llama_cpp.export import export_talker

    smaller = type("Smaller", (), {"spec": {**network.spec, "vocab_size": 4096}, "config": network.config})
    with pytest.raises(UsageError, match="at most 3072 codebook-0 ids; this one has 4096"):
        export_talker(smaller, tmp_path / "talker.gguf", "f16")


def test_a_talker_of_llama_cpps_own_converter_loads(
    bundle: Bundle, checkpoint: Checkpoint, network: Talker, tmp_path: Path
) -> None:
    """Such a file has a text vocabulary in front of the codec's ids, in its table and in its logits."""
    from ouzel.runtimes.llama_cpp.export import talker_tensors, talker_values
    from ouzel.runtimes.llama_cpp.gguf_write import Weight, write

    texts = 100
    table = Weight("token_embd.weight", (texts + 3072, 64), "f16", lambda: np.ones((texts + 3072, 64), np.float32))
    tensors = [table, *(t for t in talker_tensors(network, "fp32") if t.name != table.name)]
    values = {**talker_values(network, "fp32"), "qwen3tts.vocab_size": texts + 3072}
    path = tmp_path / "llama_cpp" / "talker.gguf"
    path.parent.mkdir()
    write(path, "qwen3tts", values, tensors)
    theirs = RUNTIME.load_talker(replace(bundle, root=tmp_path), bundle.artifact("talker"), ONE)
    ours = RUNTIME.load_talker(bundle, bundle.artifact("talker"), ONE)
    np.testing.assert_array_equal(run(theirs, rows(9), (7, 1, 1)), run(ours, rows(9), (7, 1, 1)))
