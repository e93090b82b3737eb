"""Choosing codec ids from logits (contract 3.8, 4.6, 5.3, 5.4), in numpy, with a counter-based generator.

Order for codebook 0: mask, repetition penalty, minimum length, temperature, top-k, top-p, then one uniform number through
the inverse of the cumulative distribution, codes from the most to the least likely. Greedy takes the lowest id among equals.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import SubtalkerSampling, TalkerSampling
from ouzel.errors import SynthesisError, UsageError

Logits = NDArray[np.float32]

_WORDS = 4  # of a Philox block
_TO_UNIT = 2.0**-53  # the 53 high bits of a 64-bit word as a float64 in [0, 1)


def uniforms(seed: int, frame: int, count: int, frames: int = 1) -> NDArray[np.float64]:
    """Numbers in [0, 1), float64 (frames, count), for the frames from `frame` on; they depend on nothing but seed and frame.

    Philox-4x64 with key (seed, 0); frame f takes the blocks of four words from f * ceil(count / 4) on. So any frame can be drawn
    without those before it, and no other request can shift the sequence. seed is taken modulo 2^64.
    """
    blocks = -(-count // _WORDS)
    key = np.array([seed & 0xFFFFFFFFFFFFFFFF, 0], np.uint64)
    counter = np.array([frame * blocks, 0, 0, 0], np.uint64)
    raw: NDArray[np.uint64] = np.random.Philox(counter=counter, key=key).random_raw(frames * blocks * _WORDS)
    words = raw.reshape(frames, blocks * _WORDS)[:, :count]
    return (words >> np.uint64(11)).astype(np.float64) * _TO_UNIT


def check(sampling: TalkerSampling) -> None:
    """UsageError for values outside their range, naming the range."""
    sub = sampling.subtalker
    rules = (
        (sampling.temperature >= 0, f"temperature must be 0 (greedy) or more, not {sampling.temperature}"),
        (sampling.top_k >= -1, f"top_k must be -1 or 0 (off) or a count, not {sampling.top_k}"),
        (0 < sampling.top_p <= 1, f"top_p must be above 0 and at most 1, not {sampling.top_p}"),
        (sampling.repetition_penalty > 0, f"repetition_penalty must be above 0, not {sampling.repetition_penalty}"),
        (sampling.min_tokens >= 0, f"min_tokens must be 0 or more, not {sampling.min_tokens}"),
        (sampling.max_tokens >= 1, f"max_tokens must be 1 or more, not {sampling.max_tokens}"),
        (bool(sampling.stop_token_ids), "stop_token_ids must name at least one id"),
        (sub.top_k >= -1, f"the code predictor's top_k must be -1 or 0 (off) or a count, not {sub.top_k}"),
        # The server refuses it too (contract 5.3); a silently different distribution would be worse.
        (sub.top_p == 1 or is_greedy(sub), f"the code predictor's top_p must be 1 when it samples, not {sub.top_p}"),
    )
    for fine, sentence in rules:
        if not fine:
            raise UsageError(f"Sampling: {sentence}.")


def is_greedy(sampling: SubtalkerSampling) -> bool:
    """Whether the code predictor takes the best code instead of drawing one."""
    return not sampling.do_sample or sampling.temperature <= 0


@dataclass(slots=True)
class Codebook0:
    """The chooser of one utterance's codebook-0 ids; remembers what was chosen.

    sampling: checked (see `check`). vocab: of the talker. codes: ids 0..codes-1 are codec codes, the ones above only control.
    """

    sampling: TalkerSampling
    vocab: int
    codes: int
    count: int = 0
    _ids: NDArray[np.int64] = field(init=False)
    _stops: NDArray[np.int64] = field(init=False)  # positions in _ids
    _seen: NDArray[np.bool_] = field(init=False)  # by position in _ids

    def __post_init__(self) -> None:
        bad = [i for i in self.sampling.stop_token_ids if not 0 <= i < self.vocab]
        if bad:
            raise UsageError(f"Sampling: stop_token_ids must be from 0 to {self.vocab - 1}, not {bad[0]}.")
        first = 0 if self.sampling.allow_id_zero else 1
        self._ids = np.union1d(np.arange(first, min(self.codes, self.vocab)), self.sampling.stop_token_ids).astype(np.int64)
        self._stops = np.searchsorted(self._ids, sorted(self.sampling.stop_token_ids))
        self._seen = (self._ids == 1) & self.sampling.penalise_id_one

    def choose(self, logits: Logits, uniform: float) -> int:
        """The next id from logits float32 (vocab,); SynthesisError when they are not finite."""
        options = self.sampling
        scores = logits[self._ids]
        if options.repetition_penalty != 1:
            seen = scores[self._seen]
            penalty = np.float32(options.repetition_penalty)
            # Positive scores are divided, negative ones multiplied: for a penalty above 1 that is the smaller of the two.
            pick = np.minimum if penalty > 1 else np.maximum
            scores[self._seen] = pick(seen / penalty, seen * penalty)
        if self.count < options.min_tokens:
            scores[self._stops] = -np.inf
        if options.temperature <= 0:
            at = _best(scores)
        else:
            at = _draw(scores, options.temperature, options.top_k, options.top_p, uniform)
        self.count += 1
        self._seen[at] = True
        return int(self._ids[at])


def choose_residual(logits: Logits, sampling: SubtalkerSampling, uniform: float) -> int:
    """A code of codebook 1.. from logits float32 (codes,) (contract 5.3); SynthesisError when they are not finite."""
    if is_greedy(sampling):
        return _best(logits)
    return _draw(logits, sampling.temperature, sampling.top_k, 1.0, uniform)


def _best(scores: Logits) -> int:
    at = int(scores.argmax())
    _require_finite(scores[at])
    return at


def _draw(scores: Logits, temperature: float, top_k: int, top_p: float, uniform: float) -> int:
    best = scores.max()
    _require_finite(best)
    if 0 < top_k < scores.size:
        # Temperature keeps the order, so the cut comes first and only what is left is divided.
        cut = scores.size - top_k
        limit = np.partition(scores, cut)[cut]
        kept = (scores >= limit).nonzero()[0]  # ties of the last one stay, as in vLLM
        scores = scores[kept]
    else:
        kept = np.arange(scores.size)
    order = (-scores).argsort(kind="stable")  # best first, equals by id
    mass = np.exp((scores[order] - best).astype(np.float64) / temperature).cumsum()
    if top_p < 1:
        mass = mass[: 1 + int(mass[:-1].searchsorted(top_p * mass[-1], side="left"))]
    at = int(mass.searchsorted(uniform * mass[-1], side="right"))
    return int(kept[order[min(at, mass.size - 1)]])


def _require_finite(best: np.float32) -> None:
    # NaN wins max and argmax, so looking at the best score finds it anywhere.
    if not np.isfinite(best):
        raise SynthesisError("The model gave logits that are not finite; its weights or precision are unusable.")
