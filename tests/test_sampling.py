"""Choosing codec ids: masks, penalty, limits, distributions, and random numbers that depend on nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouzel.adapters import SubtalkerSampling, TalkerSampling
from ouzel.errors import SynthesisError, UsageError
from ouzel.sampling import Codebook0, check, choose_residual, uniforms

VOCAB, CODES, STOP = 3072, 2048, 2150
GREEDY = TalkerSampling(min_tokens=0, repetition_penalty=1.0).greedy()
FREE = TalkerSampling(min_tokens=0, repetition_penalty=1.0, temperature=1.0, top_k=0)


def logits(**at: float) -> np.ndarray:
    values = np.full(VOCAB, -5, np.float32)
    for name, value in at.items():
        values[int(name[1:])] = value
    return values


def chooser(sampling: TalkerSampling) -> Codebook0:
    check(sampling)
    return Codebook0(sampling, VOCAB, CODES)


def frequencies(sampling: TalkerSampling, scores: np.ndarray, points: int = 500) -> dict[int, float]:
    """How much of [0, 1) leads to each id, by evenly spread uniforms."""
    found: dict[int, float] = {}
    for i in range(points):
        chosen = Codebook0(sampling, VOCAB, CODES).choose(scores, (i + 0.5) / points)
        found[chosen] = found.get(chosen, 0) + 1 / points
    return found


# ---- random numbers


def test_uniforms_depend_on_seed_and_frame_only() -> None:
    block = uniforms(11, 5, 16, frames=40)
    for frame in (5, 6, 44):
        np.testing.assert_array_equal(uniforms(11, frame, 16)[0], block[frame - 5])
    assert not np.intersect1d(block, uniforms(12, 5, 16, frames=40)).size
    assert np.unique(block).size == block.size
    assert (block >= 0).all()
    assert (block < 1).all()
    assert abs(block.mean() - 0.5) < 0.05


def test_uniforms_are_the_same_everywhere() -> None:
    wanted = [0.011547, 0.241549, 0.111426]
    assert uniforms(0, 0, 3)[0].round(6).tolist() == wanted


def test_any_integer_is_a_seed() -> None:
    np.testing.assert_array_equal(uniforms(-1, 0, 4), uniforms(2**64 - 1, 0, 4))
    np.testing.assert_array_equal(uniforms(2**64 + 3, 0, 4), uniforms(3, 0, 4))


# ---- which ids are allowed (contract 3.8)


def test_only_codes_and_stop_ids_are_chosen() -> None:
    scores = logits(i0=9, i2048=9, i2149=9, i2151=9, i3071=9, i700=1)
    assert chooser(GREEDY).choose(scores, 0) == 700
    assert chooser(replace(GREEDY, allow_id_zero=True)).choose(scores, 0) == 0
    assert chooser(replace(GREEDY, stop_token_ids=(STOP, 3071))).choose(scores, 0) == 3071


@given(st.integers(0, 2**32), st.floats(0, 1, exclude_max=True), st.sampled_from([0, 1, 50]), st.sampled_from([0.1, 0.9, 1.0]))
def test_whatever_is_drawn_is_allowed(seed: int, uniform: float, top_k: int, top_p: float) -> None:
    scores = np.random.default_rng(seed).standard_normal(VOCAB).astype(np.float32) * 4
    chosen = chooser(replace(FREE, top_k=top_k, top_p=top_p)).choose(scores, uniform)
    assert chosen == STOP or 1 <= chosen < CODES


def test_the_end_is_masked_for_the_first_two() -> None:
    scores = logits(i2150=9, i30=1)
    picker = chooser(replace(GREEDY, min_tokens=2))
    assert [picker.choose(scores, 0) for _ in range(3)] == [30, 30, STOP]
    sampled = chooser(TalkerSampling(min_tokens=1, top_k=1))
    assert [sampled.choose(scores, 0.99) for _ in range(2)] == [30, STOP]


def test_equals_go_to_the_lowest_id() -> None:
    assert chooser(GREEDY).choose(logits(i90=3, i40=3, i2047=3), 0.7) == 40
    assert choose_residual(np.zeros(2048, np.float32), SubtalkerSampling(do_sample=False), 0.9) == 0


# ---- repetition penalty (contract 5.4, 4.6)


def test_the_penalty_divides_positive_and_multiplies_negative_scores() -> None:
    picker = chooser(replace(GREEDY, repetition_penalty=2.0))
    assert picker.choose(logits(i5=4, i6=3), 0) == 5
    assert picker.choose(logits(i5=4, i6=1.9), 0) == 5  # 4 / 2 is still the best
    assert picker.choose(logits(i5=4, i6=2.1), 0) == 6
    below = np.full(VOCAB, -9, np.float32)
    below[[5, 7]] = -1, -1.9
    assert picker.choose(below, 0) == 7  # -1 * 2


def test_a_penalty_below_one_favours_what_was_seen() -> None:
    picker = chooser(replace(GREEDY, repetition_penalty=0.5))
    assert picker.choose(logits(i5=4), 0) == 5
    assert picker.choose(logits(i5=2.1, i6=4), 0) == 5


def test_id_one_counts_as_seen_only_for_server_parity() -> None:
    scores = logits(i1=2.05, i9=2)
    assert chooser(replace(GREEDY, repetition_penalty=1.05)).choose(scores, 0) == 1
    assert chooser(replace(GREEDY, repetition_penalty=1.05, penalise_id_one=True)).choose(scores, 0) == 9


# ---- distributions


def test_samples_follow_the_softmax() -> None:
    found = frequencies(replace(FREE, temperature=0.5), logits(i3=1, i8=0.5, i2150=0))
    weights = {3: np.exp(2), 8: np.exp(1), STOP: 1.0}
    total = sum(weights.values()) + 2045 * np.exp(-10)
    for code, weight in weights.items():
        assert found[code] == pytest.approx(weight / total, abs=3e-3)


def test_top_k_keeps_ties_of_the_last_one() -> None:
    found = frequencies(replace(FREE, top_k=2), logits(i3=2, i8=1, i9=1, i10=0.9))
    assert sorted(found) == [3, 8, 9]
    assert found[8] == pytest.approx(found[9], abs=3e-3)


def test_top_p_keeps_the_fewest_that_reach_it() -> None:
    scores = np.full(VOCAB, -60, np.float32)
    scores[[2, 4, 6, 8]] = np.log([0.4, 0.3, 0.2, 0.1])
    assert sorted(frequencies(replace(FREE, top_p=0.65), scores)) == [2, 4]
    assert sorted(frequencies(replace(FREE, top_p=0.75), scores)) == [2, 4, 6]
    assert sorted(frequencies(replace(FREE, top_p=0.01), scores)) == [2]


def test_residual_codes_follow_the_softmax_of_the_best_k() -> None:
    scores = np.zeros(2048, np.float32)
    scores[[5, 11, 17]] = 3, 2, 1
    drawn = [choose_residual(scores, SubtalkerSampling(top_k=2, temperature=1), (i + 0.5) / 2000) for i in range(2000)]
    assert set(drawn) == {5, 11}
    assert drawn.count(5) / 2000 == pytest.approx(np.e / (1 + np.e), abs=1e-3)


# ---- errors


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("sampling", [GREEDY, TalkerSampling()])
def test_logits_that_are_not_finite_are_an_error(sampling: TalkerSampling, bad: float) -> None:
    scores = logits(i5=1)
    scores[100] = bad
    with pytest.raises(SynthesisError, match="not finite"):
        chooser(sampling).choose(scores, 0.5)
    with pytest.raises(SynthesisError, match="not finite"):
        choose_residual(np.full(8, bad, np.float32), sampling.subtalker, 0.5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"temperature": -0.1}, "temperature must be 0"),
        ({"top_k": -2}, "top_k must be -1 or 0"),
        ({"top_p": 0.0}, "top_p must be above 0"),
        ({"top_p": 1.1}, "top_p must be above 0"),
        ({"repetition_penalty": 0.0}, "repetition_penalty must be above 0"),
        ({"min_tokens": -1}, "min_tokens must be 0"),
        ({"max_tokens": 0}, "max_tokens must be 1"),
        ({"stop_token_ids": ()}, "stop_token_ids must name"),
        ({"subtalker": SubtalkerSampling(top_p=0.9)}, "code predictor's top_p must be 1"),
        ({"subtalker": SubtalkerSampling(top_k=-3)}, "code predictor's top_k"),
        ({"temperature": float("nan")}, "temperature must be 0"),
    ],
)
def test_values_out_of_range_are_named(change: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check(replace(TalkerSampling(), **change))


def test_a_greedy_predictor_may_carry_any_top_p() -> None:
    check(TalkerSampling(subtalker=SubtalkerSampling(top_p=0.9, do_sample=False)))


def test_stop_ids_must_be_in_the_vocabulary() -> None:
    with pytest.raises(UsageError, match="from 0 to 3071, not 5000"):
        chooser(TalkerSampling(stop_token_ids=(2150, 5000)))
