"""How far rounded weights move the talker and the code predictor, per runtime and weights of a bundle.

    python -m ouzel.bench.agreement BUNDLE

The bundle's fp32 artifacts speak a few sentences; every other artifact then gets the same rows, hidden vectors and ids, so that
nothing builds up (teacher forcing). For the talker the distributions are compared over the ids that can be chosen, for the code
predictor, which gives no distribution out, the best codes of a frame as long as all before them are equal.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import PredictorCore, Rows, SubtalkerSampling, TalkerCore, TalkerSampling
from ouzel.autoregressive import ArTalker
from ouzel.bundle import Artifact, Bundle, open_bundle
from ouzel.errors import OuzelError, UsageError
from ouzel.models.base import Frontend
from ouzel.models.registry import get_family
from ouzel.request import SpeechRequest
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.registry import get_runtime

TEXTS = (
    "The ship left the harbour before dawn.",
    "Nobody knew what the letter said.",
    "Three of them came back in the rain, and one did not.",
    "Please bring the blue book, not the green one.",
)
_EXACT = "fp32"
_ONE = StageOptions(threads=1)
_GREEDY = SubtalkerSampling(do_sample=False)

Floats = NDArray[np.float32]


@dataclass(slots=True)
class Trace:
    """What went through the exact talker in one utterance: pieces of rows, hidden vector and logits after each, and the ids."""

    rows: list[Rows] = field(default_factory=list)
    hidden: list[Floats] = field(default_factory=list)
    logits: list[Floats] = field(default_factory=list)
    code0: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TalkerAgreement:
    """top1: the best id is the same. top5: the exact best one is among the five best. kl: mean nats from exact to rounded."""

    runtime: str
    weights: str
    top1: float
    top5: float
    kl: float


@dataclass(frozen=True, slots=True)
class PredictorAgreement:
    """top1: the best code is the same, of those whose predecessors in the frame are. frames: with all codes the same."""

    runtime: str
    weights: str
    top1: float
    frames: float


class _Recorder:
    """A TalkerCore that notes what passes."""

    def __init__(self, core: TalkerCore, trace: Trace) -> None:
        self._core, self._trace = core, trace
        self.hidden_size, self.vocab_size, self.max_positions = core.hidden_size, core.vocab_size, core.max_positions

    def start(self, positions: int) -> Any:
        return self._core.start(positions)

    def forward(self, state: Any, rows: Rows) -> tuple[Floats, Floats]:
        hidden, logits = self._core.forward(state, rows)
        self._trace.rows.append(rows.copy())
        self._trace.hidden.append(hidden)
        self._trace.logits.append(logits)
        return hidden, logits


def measure(bundle: Bundle, *, frames: int) -> tuple[list[TalkerAgreement], list[PredictorAgreement]]:
    """All artifacts of both stages that can be loaded here, the exact ones aside; `frames` of each text at most."""
    exact = {stage: _exact(bundle, stage) for stage in ("talker", "predictor")}
    frontend = get_family(bundle.manifest.family).frontend(bundle)
    predictor = get_runtime(exact["predictor"].runtime).load_predictor(bundle, exact["predictor"], _ONE)
    core = get_runtime(exact["talker"].runtime).load_talker(bundle, exact["talker"], _ONE)
    traces = [_speak(bundle, frontend, core, predictor, text, frames, seed) for seed, text in enumerate(TEXTS)]
    codes = bundle.array("tables/residual.npy").shape[1]
    ids = np.append(np.arange(codes), frontend.stop_token_id)
    talkers, predictors = [], []
    for artifact in bundle.manifest.artifacts:
        runtime = get_runtime(artifact.runtime)
        if artifact in exact.values() or not runtime.status().available:
            continue
        if artifact.stage == "talker":
            talkers.append(_talker(artifact, runtime.load_talker(bundle, artifact, _ONE), traces, ids))
        elif artifact.stage == "predictor":
            predictors.append(
                _predictor(artifact, runtime.load_predictor(bundle, artifact, _ONE), predictor, traces, frontend.groups)
            )
    return talkers, predictors


def _exact(bundle: Bundle, stage: str) -> Artifact:
    for artifact in bundle.manifest.artifacts:
        if artifact.stage == stage and artifact.weights == _EXACT and get_runtime(artifact.runtime).status().available:
            return artifact
    raise UsageError(
        f"{bundle.root} has no {stage} in {_EXACT} to compare with; "
        f"add one: ouzel convert CHECKPOINT {bundle.root} --add --weights {_EXACT}."
    )


def _speak(
    bundle: Bundle, frontend: Frontend, core: TalkerCore, predictor: PredictorCore, text: str, frames: int, seed: int
) -> Trace:
    trace = Trace()
    tables = bundle.array("tables/codec.npy"), bundle.array("tables/residual.npy")
    talker = ArTalker(_Recorder(core, trace), predictor, *tables)
    # A model that clones voices needs a speaker; which one does not matter.
    speaker = np.random.default_rng(0).standard_normal(frontend.hidden_size, np.float32) if frontend.task == "Base" else None
    request = frontend.resolve(SpeechRequest(text, speaker_embedding=speaker))
    sampling = replace(TalkerSampling(seed=seed, max_tokens=frames + 1), stop_token_ids=(frontend.stop_token_id,))
    state = talker.prefill(frontend.rows(request, text), sampling)
    while (frame := talker.step([state])[0]).codes is not None:
        trace.code0.append(int(frame.codes[0]))
    return trace


def _talker(artifact: Artifact, core: TalkerCore, traces: list[Trace], ids: NDArray[np.int64]) -> TalkerAgreement:
    same, near, kl = [], [], []
    for trace in traces:
        state = core.start(sum(map(len, trace.rows)))
        for rows, wanted in zip(trace.rows, trace.logits, strict=True):
            _, got = core.forward(state, rows)
            p, q = _log_softmax(wanted[ids]), _log_softmax(got[ids])
            best = int(p.argmax())
            same.append(best == int(q.argmax()))
            near.append(best in np.argpartition(-q, 5)[:5])
            kl.append(float((np.exp(p) * (p - q)).sum()))
    return TalkerAgreement(artifact.runtime, artifact.weights, *(float(np.mean(found)) for found in (same, near, kl)))


def _predictor(
    artifact: Artifact, core: PredictorCore, exact: PredictorCore, traces: list[Trace], groups: int
) -> PredictorAgreement:
    same, frames, unused = [], [], np.zeros(groups - 1)
    for trace in traces:
        for hidden, code0 in zip(trace.hidden, trace.code0, strict=False):
            wanted, got = (one.frame(hidden, code0, _GREEDY, unused) for one in (exact, core))
            differing = np.flatnonzero(wanted != got)
            equal = int(differing[0]) if len(differing) else len(wanted)
            same += [True] * equal + [False] * (len(differing) > 0)
            frames.append(not len(differing))
    return PredictorAgreement(artifact.runtime, artifact.weights, float(np.mean(same)), float(np.mean(frames)))


def _log_softmax(logits: Floats) -> NDArray[np.float64]:
    shifted = logits.astype(np.float64) - logits.max()
    result: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum())
    return result


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m ouzel.bench.agreement", description=__doc__.splitlines()[0])
    parser.add_argument("bundle", type=Path, help="a bundle folder with fp32 artifacts and others")
    parser.add_argument("--frames", type=int, default=100, help="of each of the four texts at most")
    options = parser.parse_args(arguments)
    try:
        talkers, predictors = measure(open_bundle(options.bundle), frames=options.frames)
    except OuzelError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"{'talker':26}{'top-1 %':>9}{'top-5 %':>9}{'KL, nats':>11}")
    for t in talkers:
        print(f"  {t.runtime:14}{t.weights:10}{100 * t.top1:9.1f}{100 * t.top5:9.1f}{t.kl:11.5f}")
    print(f"{'code predictor':26}{'top-1 %':>9}{'frames %':>9}")
    for p in predictors:
        print(f"  {p.runtime:14}{p.weights:10}{100 * p.top1:9.1f}{100 * p.frames:9.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
