"""Figures of judged sentences: word error rates, lost and repeated words, lengths, speakers, pitch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

import numpy as np

from .listening import Heard

TOO_LONG, TOO_SHORT = 1.25, 0.8  # of the frames that the text side asked for
_SLACK = 6  # frames that any utterance may run over or under: pauses at the ends
_ROUNDS = 1000


@dataclass(frozen=True)
class Rate:
    """errors of words; low, high: where 95 % of the rates lie when the sentences are drawn again (bootstrap)."""

    errors: int
    words: int
    low: float
    high: float

    @property
    def rate(self) -> float:
        return self.errors / self.words if self.words else 0.0


def rate(heard: Iterable[Heard]) -> Rate:
    scores = np.array([(h.score.errors, h.score.words) for h in heard], np.int64).reshape(-1, 2)
    if not len(scores):
        return Rate(0, 0, 0.0, 0.0)
    drawn = scores[np.random.default_rng(0).integers(0, len(scores), (_ROUNDS, len(scores)))].sum(axis=1)
    low, high = np.percentile(drawn[:, 0] / np.maximum(drawn[:, 1], 1), [2.5, 97.5])
    errors, count = scores.sum(axis=0)
    return Rate(int(errors), int(count), float(low), float(high))


def skipped(heard: Heard) -> int:
    """Words of which nothing was written down. Two that were taken for one ("form a", "former") are misheard, not skipped."""
    total = 0
    for _, said, got in heard.score.ops:
        lost = len(said.split()) - len(got.split())
        total += max(0, lost - 1 if got else lost)
    return total


def repeated(heard: Heard) -> int:
    """Words, or pairs of words, written down twice in a row though they were to be said once."""
    return max(0, _echoes(heard.score.heard) - _echoes(heard.score.said))


def _echoes(said: Sequence[str]) -> int:
    pairs = list(pairwise(said))
    once = sum(a == b for a, b in pairs)
    return once + sum(a == b and a[0] != a[1] for a, b in zip(pairs, pairs[2:], strict=False))


def edges(heard: Heard) -> tuple[bool, bool]:
    """Whether the first and the last word were written down, wherever anything was added around them."""
    said, got = heard.score.said, heard.score.heard
    if not said or not got:
        return False, False
    wrong = [was.split() for _, was, _ in heard.score.ops if was]
    first = got[0] == said[0] or not any(was[0] == said[0] for was in wrong)
    last = got[-1] == said[-1] or not any(was[-1] == said[-1] for was in wrong)
    return first, last


def astray(heard: Heard) -> str:
    """ "" for an utterance that ended by itself about where it should, else what went wrong."""
    if heard.finish != "stop":
        return heard.finish
    if heard.expected:
        if heard.frames > TOO_LONG * heard.expected + _SLACK:
            return "too long"
        if heard.frames < TOO_SHORT * heard.expected - _SLACK:
            return "too short"
    return ""


def mean_mos(heard: Sequence[Heard]) -> tuple[float, float, float]:
    signal, background, overall = np.mean([h.mos for h in heard], axis=0)
    return float(signal), float(background), float(overall)


def mean_pitch(heard: Sequence[Heard]) -> tuple[float, float, float]:
    """Mean Hz, deviation, range of the utterances in which there was any voice."""
    found = [h.pitch for h in heard if h.pitch[0] > 0]
    if not found:
        return 0.0, 0.0, 0.0
    hz, deviation, span = np.mean(found, axis=0)
    return float(hz), float(deviation), float(span)


@dataclass(frozen=True)
class Margin:
    """same, cross: mean cosine of utterances of one speaker, of two; right: share of utterances nearer to their own speaker's."""

    same: float
    cross: float
    right: float

    @property
    def margin(self) -> float:
        return self.same - self.cross


def margin(heard: Sequence[Heard]) -> Margin:
    """Of at least two utterances of each of two or more speakers."""
    usable = [h for h in heard if h.embedding]
    vectors = np.array([h.embedding for h in usable], np.float64)
    names = np.array([h.speaker for h in usable])
    cosines = vectors @ vectors.T
    own = names[:, None] == names[None]
    others = own & ~np.eye(len(names), dtype=bool)
    if not usable or not others.any() or own.all():
        return Margin(0.0, 0.0, 0.0)
    near = np.where(others, cosines, 0).sum(axis=1) / np.maximum(others.sum(axis=1), 1)
    far = np.where(~own, cosines, 0).sum(axis=1) / np.maximum((~own).sum(axis=1), 1)
    return Margin(float(cosines[others].mean()), float(cosines[~own].mean()), float((near > far).mean()))


def likeness(heard: Sequence[Heard], teacher: Sequence[Heard]) -> float:
    """Mean cosine of each utterance with the teacher's of the same sentence and speaker."""
    theirs = {(h.text, h.speaker): h.embedding for h in teacher}
    pairs = [(h.embedding, theirs.get((h.text, h.speaker))) for h in heard if h.embedding]
    found = [float(np.dot(a, b)) for a, b in pairs if b]
    return fmean(found) if found else 0.0


def rtf(heard: Sequence[Heard]) -> float:
    """CPU seconds of the process for a second of audio."""
    seconds = sum(h.seconds for h in heard)
    return sum(h.cpu for h in heard) / seconds if seconds else 0.0
