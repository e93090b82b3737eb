"""ArTalker: the end rule, text rows, limits and independence of utterances, and the official package's codes."""

from __future__ import annotations

import gc
import json
import weakref
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import ar_case
from ouzel.adapters import Frame, PredictorCore, PromptRows, SubtalkerSampling, TalkerAdapter, TalkerCore, TalkerSampling
from ouzel.autoregressive import ArTalker
from ouzel.errors import SynthesisError, UsageError
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.onnxruntime import RUNTIME

HIDDEN, VOCAB, GROUPS, STOP = 4, 3072, 4, 2150
ONE = StageOptions(threads=1)


@dataclass
class Rows:
    """Key/value state of the toy talker: the rows themselves."""

    seen: list[np.ndarray] = field(default_factory=list)


class ToyTalker:
    """A talker whose best id is told by how many rows it has seen: `ends_at` rows -> the end id."""

    hidden_size, vocab_size = HIDDEN, VOCAB

    def __init__(self, ends_at: int = 10**9, max_positions: int = 64) -> None:
        self.ends_at, self.max_positions = ends_at, max_positions
        self.started: list[int] = []
        self.runs = 0

    def start(self, positions: int) -> Rows:
        self.started.append(positions)
        return Rows()

    def forward(self, state: Rows, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.runs += 1
        state.seen.extend(rows.copy())
        logits = np.zeros(VOCAB, np.float32)
        count = len(state.seen)
        logits[STOP if count >= self.ends_at else count] = 5
        return np.full(HIDDEN, count, np.float32), logits


class ToyPredictor:
    """Codes that tell what it was given."""

    def frame(self, hidden: np.ndarray, code0: int, sampling: SubtalkerSampling, uniforms: np.ndarray) -> np.ndarray:
        return np.array([code0 % 7, int(hidden[0]) % 7, int(uniforms[0] * 7)])


CODEC = np.arange(VOCAB * HIDDEN, dtype=np.float32).reshape(VOCAB, HIDDEN)
RESIDUAL = np.random.default_rng(0).integers(0, 9, (GROUPS - 1, 64, HIDDEN)).astype(np.float32)
SAMPLING = TalkerSampling(repetition_penalty=1.0).greedy()


def toy(**options: int) -> tuple[ArTalker, ToyTalker]:
    core = ToyTalker(**options)
    return ArTalker(core, ToyPredictor(), CODEC, RESIDUAL), core


def prompt(length: int = 3, trailing: int = 0) -> PromptRows:
    draw = np.random.default_rng(length)
    rows = draw.standard_normal((length + trailing + 1, HIDDEN)).astype(np.float32)
    return PromptRows(rows[:length], rows[length:-1], rows[-1], text_tokens=trailing + 1)


def play(talker: TalkerAdapter, rows: PromptRows, sampling: TalkerSampling) -> tuple[np.ndarray, str | None]:
    state = talker.prefill(rows, sampling)
    frames = []
    while (frame := talker.step([state])[0]).codes is not None:
        frames.append(frame.codes)
    return np.array(frames).reshape(-1, talker.groups), frame.finish


def test_the_protocols_hold() -> None:
    talker, core = toy()
    assert isinstance(talker, TalkerAdapter)
    assert isinstance(core, TalkerCore)
    assert isinstance(ToyPredictor(), PredictorCore)
    assert talker.groups == GROUPS


def test_the_end_id_is_no_frame() -> None:
    talker, core = toy(ends_at=8)
    frames, finish = play(talker, prompt(3), SAMPLING)
    assert finish == "stop"
    assert frames[:, 0].tolist() == [3, 4, 5, 6, 7]
    assert core.runs == 6


@pytest.mark.parametrize("limit", [1, 2, 10])
def test_the_id_at_the_limit_is_no_frame_either(limit: int) -> None:
    talker, _ = toy()
    frames, finish = play(talker, prompt(3), replace(SAMPLING, max_tokens=limit))
    assert (len(frames), finish) == (limit - 1, "length")


@pytest.mark.parametrize(("limit", "made"), [(4096, 8 + 10), (12, 11)])
def test_a_planned_length_is_overrun_by_ten_frames_at_most(limit: int, made: int) -> None:
    talker, _ = toy()
    frames, finish = play(talker, replace(prompt(3), frames=8), replace(SAMPLING, max_tokens=limit))
    assert (len(frames), finish) == (made, "length")


def test_an_end_id_at_the_limit_is_a_stop() -> None:
    talker, _ = toy(ends_at=8)
    assert play(talker, prompt(3), replace(SAMPLING, max_tokens=6))[1] == "stop"


def test_a_frame_leaves_before_the_talker_takes_it_in() -> None:
    talker, core = toy()
    state = talker.prefill(prompt(3), SAMPLING)
    assert core.runs == 1
    assert talker.step([state])[0].codes is not None
    assert core.runs == 1
    talker.step([state])
    assert core.runs == 2


def test_a_finished_state_stays_finished_and_lets_its_buffers_go() -> None:
    talker, core = toy(ends_at=5)
    state = talker.prefill(prompt(3), SAMPLING)
    cache = weakref.ref(state.kv)
    talker.step([state])
    talker.step([state])
    assert [talker.step([state])[0] for _ in range(3)] == [Frame(None, "stop")] * 3
    gc.collect()
    assert cache() is None
    assert core.runs == 3


def test_rows_are_codes_and_text_then_pad() -> None:
    talker, _ = toy()
    rows = prompt(3, trailing=2)
    state = talker.prefill(rows, SAMPLING)
    codes = [talker.step([state])[0].codes for _ in range(5)]
    seen = state.kv.seen
    np.testing.assert_array_equal(seen[:3], rows.prefill)
    text = [*rows.trailing, rows.pad, rows.pad]
    for i in range(4):
        embedded = CODEC[codes[i][0]] + sum(RESIDUAL[q, codes[i][q + 1]] for q in range(3))
        np.testing.assert_allclose(seen[3 + i], embedded + text[i], rtol=1e-6)


def test_a_prompt_beyond_the_context_is_refused_with_numbers() -> None:
    talker, core = toy(max_positions=64)
    with pytest.raises(UsageError, match="63 rows long and leaves no room in the talker's context of 64"):
        talker.prefill(prompt(63), SAMPLING)
    assert not core.started
    frames, finish = play(talker, prompt(62), SAMPLING)
    assert (len(frames), finish) == (1, "length")


def test_the_context_bounds_the_utterance() -> None:
    talker, _ = toy(max_positions=64)
    frames, finish = play(talker, prompt(10), SAMPLING)
    assert (len(frames), finish) == (53, "length")


def test_states_ask_for_the_room_they_may_need() -> None:
    talker, core = toy(max_positions=4096)
    talker.prefill(prompt(10), replace(SAMPLING, max_tokens=20))
    talker.prefill(prompt(10), SAMPLING)
    assert core.started == [30, 410]


def test_stepping_together_is_stepping_alone() -> None:
    talker, _ = toy(ends_at=30)
    sampling = [replace(TalkerSampling(), seed=i, top_k=5) for i in range(3)]
    alone = [play(talker, prompt(3 + i, trailing=i), sampling[i])[0] for i in range(3)]
    states = [talker.prefill(prompt(3 + i, trailing=i), sampling[i]) for i in range(3)]
    rounds = [talker.step(states) for _ in range(12)]
    for i in range(3):
        np.testing.assert_array_equal([r[i].codes for r in rounds], alone[i][:12])


def test_seeds_decide_and_repeat_beyond_one_block_of_numbers() -> None:
    talker, _ = toy(max_positions=500)
    sampling = TalkerSampling(top_k=40, temperature=50, max_tokens=80, seed=5)
    first, again = (play(talker, prompt(3), sampling)[0] for _ in range(2))
    other = play(talker, prompt(3), replace(sampling, seed=6))[0]
    assert len(first) == 79
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    # The predictor's numbers differ from frame to frame, across the border between two draws too.
    assert len(np.unique(first[28:36, 3])) > 1


def test_values_that_are_not_finite_are_an_error() -> None:
    class Broken(ToyTalker):
        def forward(self, state: Rows, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            hidden, logits = super().forward(state, rows)
            return hidden * np.nan, logits

    with pytest.raises(SynthesisError, match="hidden values that are not finite"):
        ArTalker(Broken(), ToyPredictor(), CODEC, RESIDUAL).prefill(prompt(), SAMPLING)


def test_bad_sampling_and_mixed_models_are_refused() -> None:
    talker, _ = toy()
    with pytest.raises(UsageError, match="code predictor's top_p"):
        talker.prefill(prompt(), TalkerSampling(subtalker=SubtalkerSampling(top_p=0.5)))
    with pytest.raises(UsageError, match=r"one width, not \[4, 5\]"):
        ArTalker(ToyTalker(), ToyPredictor(), np.zeros((8, 5), np.float32), RESIDUAL)


def test_greedy_codes_are_those_of_the_official_package(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("autoregressive")
    bundle = ar_case.nano_bundle(folder / "bundle", ar_case.nano_checkpoint(folder / "checkpoint"), "fp32")
    core = RUNTIME.load_talker(bundle, bundle.artifact("talker"), ONE)
    predictor = RUNTIME.load_predictor(bundle, bundle.artifact("predictor"), ONE)
    talker = ArTalker(core, predictor, bundle.array("tables/codec.npy"), bundle.array("tables/residual.npy"))
    golden, meta = np.load(ar_case.GOLDEN / "nano.npz"), json.loads((ar_case.GOLDEN / "nano.json").read_text())
    rows = PromptRows(golden["prompt"], np.zeros((0, 64), np.float32), golden["pad"], text_tokens=1)
    sampling = TalkerSampling(
        repetition_penalty=meta["repetition_penalty"], max_tokens=meta["max_tokens"], allow_id_zero=True
    ).greedy()
    state = talker.prefill(rows, sampling)
    hidden, codes = [state.hidden], []
    while (frame := talker.step([state])[0]).codes is not None:
        codes.append(frame.codes)
        hidden.append(state.hidden)
    hidden.append(state.hidden)
    np.testing.assert_array_equal(codes, golden["codes"])
    np.testing.assert_allclose(hidden[1 :: meta["hidden_stride"]], golden["hidden"], atol=1e-4)


def test_a_planned_length_is_reached() -> None:
    """The toy ends at 8, five frames on; rows that plan more frames wait, as they would otherwise be cut short."""
    talker, _ = toy(ends_at=8)
    for planned, made in ((5, 5), (4, 5)):
        frames, finish = play(talker, replace(prompt(3), frames=planned), SAMPLING)
        assert (len(frames), finish) == (made, "stop")
    frames, _ = play(talker, replace(prompt(3), frames=7), SAMPLING)
    assert len(frames) >= 7
