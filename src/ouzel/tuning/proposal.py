"""From what was measured to where each stage should run: the finest weights that leave the machine time to spare."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from ouzel.errors import SynthesisError
from ouzel.runtimes.base import STAGES
from ouzel.schedule.plan import FRAME_MS, first_chunk, smallest_sustained_chunk
from ouzel.schedule.speed import SpeedEstimator, SpeedModel
from ouzel.tuning.cells import Finding

AMPLE = 0.7
"""Real-time factor that is fast enough: what else runs on the machine, and a processor that grows warm, take the rest."""
MARGIN_MS = 50.0  # the auto schedule's default
CHUNKS = (4, 8, 12, 16, 25)  # sizes of later chunks; 25 is the server's
_CHUNK_COST = 1.05  # a smaller chunk may cost that much more than one of 25 frames


@dataclass(frozen=True, slots=True)
class Proposal:
    """The stages, and how they should be chunked.

    rtf: projected, with talker and decoder at once. chunk: frames of later chunks. first: frames of the first one at the speed
    measured. sustained: whether playback can go on for ever.
    """

    talker: Finding
    predictor: Finding
    decoder: Finding
    rtf: float
    chunk: int
    first: int
    sustained: bool

    @property
    def stages(self) -> tuple[Finding, Finding, Finding]:
        return self.talker, self.predictor, self.decoder


def propose(findings: Iterable[Finding], cores: int) -> Proposal:
    """Of all placements at AMPLE or below the one with the finest weights, then the least CPU; if there is none, the fastest.

    The talker's weights count before the predictor's, those before the decoder's. SynthesisError names a stage without finding.
    """
    good = [finding for finding in findings if not finding.problem]
    by_stage = [[f for f in good if f.cell.stage == stage] for stage in STAGES]
    for stage, found in zip(STAGES, by_stage, strict=True):
        if not found:
            raise SynthesisError(f"Nothing could carry out the {stage}.")
    choices = [_Choice(choice, cores) for choice in product(*(_worth(found) for found in by_stage))]
    best = min(choices, key=lambda choice: choice.rank)
    talker, predictor, decoder = best.stages
    model = _model(talker, predictor, decoder)
    chunk = next(n for n in CHUNKS if model.chunk_ms(n) / n <= _CHUNK_COST * model.chunk_ms(CHUNKS[-1]) / CHUNKS[-1])
    sustained = smallest_sustained_chunk(model, chunk) is not None
    return Proposal(talker, predictor, decoder, best.rtf, chunk, first_chunk(model, chunk, MARGIN_MS), sustained)


def bits(weights: str) -> int:
    """Of a weight that is called "fp32", "bf16", "int8", "q4_0", "8da4w" …; 32 where the name does not say."""
    found = re.search(r"(\d+)w\b", weights) or re.search(r"(\d+)", weights)
    return int(found[1]) if found else 32


class _Choice:
    """A finding for each stage, each measured alone, and what they are together on these cores."""

    def __init__(self, stages: Sequence[Finding], cores: int) -> None:
        self.stages = stages
        talker, predictor, decoder = stages
        work = talker.wall_ms + predictor.wall_ms
        busy = sum(f.cpu_ms for f in stages) / cores
        # While the decoder works, the talker's threads have the cores that are left.
        share = min(1.0, max(0, cores - decoder.threads) / max(talker.threads, predictor.threads))
        self.rtf = max(work + decoder.wall_ms * (1 - share), decoder.wall_ms, busy) / FRAME_MS
        mixed = len({f.cell.runtime for f in stages}) + len({(f.cell.runtime, f.threads) for f in (talker, predictor)})
        exactness = tuple(-min(bits(f.cell.weights), 32) for f in stages)
        ample = self.rtf <= AMPLE
        # Rounded, so that noise decides for no odd mixture of runtimes.
        cost = round(sum(f.cpu_ms for f in stages) / FRAME_MS, 1)
        self.rank = (not ample, exactness if ample else (), cost if ample else round(self.rtf, 1), mixed, self.rtf, cost)


def _worth(found: Sequence[Finding]) -> list[Finding]:
    """Without those that another one of the same runtime surpasses in every respect."""

    def merits(one: Finding) -> tuple[float, ...]:
        return -bits(one.cell.weights), one.wall_ms, one.cpu_ms, one.threads

    def surpasses(other: Finding, one: Finding) -> bool:
        pairs = list(zip(merits(other), merits(one), strict=True))
        alike = other.cell.runtime == one.cell.runtime
        return alike and all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)

    return [one for one in found if not any(surpasses(other, one) for other in found)]


def _model(talker: Finding, predictor: Finding, decoder: Finding) -> SpeedModel:
    speed = SpeedEstimator()
    speed.add_talker(1, talker.wall_ms + predictor.wall_ms)
    for size, ms in decoder.calls:
        speed.add_decode(size, ms)
    model = speed.model()
    if model is None:
        raise SynthesisError("The stages were too fast to be timed.")
    return model
