"""How often a bundle's networks choose the codes that the full-precision ones choose, both given the same past.

The past is what the full-precision bundle said (its usual sampling, a fixed seed). At each frame both are asked for their
likeliest codebook-0 id, the end included; the code predictor then gets the id of the past and chooses its own codes greedily.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ouzel.adapters import Codes, PredictorCore, PromptRows, SubtalkerSampling, TalkerCore, TalkerSampling
from ouzel.api.load import stage_ids
from ouzel.api.plan import TextOptions, make_plan, make_request
from ouzel.autoregressive import ArTalker
from ouzel.bundle import Bundle, open_bundle
from ouzel.errors import ConfigError
from ouzel.models.base import Frontend
from ouzel.models.registry import get_family
from ouzel.pipeline import load_deploy
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.registry import get_runtime
from ouzel.sampling import Codebook0

_GREEDY = SubtalkerSampling(do_sample=False)


@dataclass(frozen=True)
class Cores:
    """The two networks of a bundle with the tables between them. codec (vocab, H), residual (G - 1, codes, H) float32."""

    talker: TalkerCore
    predictor: PredictorCore
    codec: np.ndarray
    residual: np.ndarray

    def row(self, codes: np.ndarray) -> np.ndarray:
        """(H,) float32: the talker's input for a frame of codes (G,), without its text row."""
        total: np.ndarray = self.residual[np.arange(len(self.residual)), codes[1:]].sum(0) + self.codec[codes[0]]
        return total


@dataclass(frozen=True)
class Past:
    """What was said: codes (frames, G) of a text by a voice, and the sampling that ended it."""

    text: str
    voice: str
    codes: Codes
    stop: tuple[int, ...]


@dataclass(frozen=True)
class Choices:
    """first: (frames + 1,) likeliest codebook-0 ids, the last one after the end; rest: (frames, G - 1)."""

    first: np.ndarray
    rest: np.ndarray


def open_cores(bundle: Bundle) -> Cores:
    """The artifacts that the bundle's own placement names, one thread each."""
    found = {}
    for stage in ("talker", "predictor"):
        own = bundle.manifest.placement.get(stage, {})
        artifact = bundle.artifact(stage, own.get("runtime"), own.get("weights"))
        found[stage] = getattr(get_runtime(artifact.runtime), f"load_{stage}")(bundle, artifact, StageOptions(threads=1))
    tables = (bundle.array(f"tables/{name}.npy").view(np.ndarray) for name in ("codec", "residual"))
    return Cores(found["talker"], found["predictor"], *tables)


def sampling_of(bundle: Bundle) -> TalkerSampling:
    """What a request without options is spoken with."""
    pipeline = get_family(bundle.manifest.family).pipeline()
    deploy = bundle.deploy or pipeline.default_deploy
    if deploy is None:
        raise ConfigError(f"Neither the bundle {bundle.root.name} nor family {bundle.manifest.family!r} has a deploy file.")
    config = load_deploy(deploy, pipeline=pipeline)
    return config.talker_sampling(stage_ids(config)[0])


def rows_of(frontend: Frontend, text: str, voice: str, sampling: TalkerSampling) -> tuple[PromptRows, TalkerSampling]:
    """Prompt and sampling of a text of one segment."""
    plan = make_plan(make_request(text, {"voice": voice, "seed": 7}), frontend, sampling, 7, TextOptions())
    return plan.segments[0].rows(), plan.segments[0].sampling


def speak(cores: Cores, frontend: Frontend, text: str, voice: str, sampling: TalkerSampling) -> Past:
    """Codes of a text as the product samples them."""
    rows, mine = rows_of(frontend, text, voice, sampling)
    talker = ArTalker(cores.talker, cores.predictor, cores.codec, cores.residual)
    state, frames = talker.prefill(rows, mine), []
    while (codes := talker.step([state])[0].codes) is not None:
        frames.append(codes)
    return Past(text, voice, np.array(frames, np.int64).reshape(-1, talker.groups), mine.stop_token_ids)


def choose(cores: Cores, rows: PromptRows, past: Past) -> Choices:
    """What the networks would say after each step of a past. Where the text side plans the length, no end before it."""
    plain = replace(TalkerSampling().greedy(), repetition_penalty=1.0, min_tokens=rows.frames or 0, stop_token_ids=past.stop)
    chooser = Codebook0(plain, cores.talker.vocab_size, cores.residual.shape[1])
    draws = np.zeros(len(cores.residual))
    state = cores.talker.start(len(rows.prefill) + len(past.codes))
    hidden, logits = cores.talker.forward(state, rows.prefill)
    first, rest = [chooser.choose(logits, 0.0)], []
    for index, codes in enumerate(past.codes):
        rest.append(cores.predictor.frame(hidden, int(codes[0]), _GREEDY, draws))
        text = rows.trailing[index] if index < len(rows.trailing) else rows.pad
        hidden, logits = cores.talker.forward(state, (cores.row(codes) + text)[None].astype(np.float32))
        first.append(chooser.choose(logits, 0.0))
    return Choices(np.array(first, np.int64), np.array(rest, np.int64).reshape(len(past.codes), -1))


@dataclass(frozen=True)
class Agreement:
    """Shares of frames with the same codebook-0 id (the end counts), of frames with all codes the same, of single codes."""

    first: float
    all: float
    each: float


def agreement(wanted: Sequence[Choices], got: Sequence[Choices]) -> Agreement:
    first = np.concatenate([a.first == b.first for a, b in zip(wanted, got, strict=True)])
    rest = np.concatenate([a.rest == b.rest for a, b in zip(wanted, got, strict=True)])
    begun = np.concatenate([(a.first == b.first)[:-1] for a, b in zip(wanted, got, strict=True)])
    both = np.concatenate([begun[:, None], rest], axis=1)
    return Agreement(float(first.mean()), float(both.all(axis=1).mean()), float(both.mean()))


def compare(full: Path, others: Sequence[Path], texts: Sequence[tuple[str, str]]) -> list[Agreement]:
    """Each of the other bundles against `full`, on (text, voice) pairs. ConfigError for bundles of different checkpoints."""
    bundle = open_bundle(full)
    for path in others:
        if open_bundle(path).manifest.source.get("files") != bundle.manifest.source.get("files"):
            raise ConfigError(f"{full} and {path} are of different checkpoints; convert both again from one.")
    cores, sampling = open_cores(bundle), sampling_of(bundle)
    frontend = get_family(bundle.manifest.family).frontend(bundle)
    pasts = [speak(cores, frontend, text, voice, sampling) for text, voice in texts]
    wanted = [choose(cores, rows_of(frontend, past.text, past.voice, sampling)[0], past) for past in pasts]
    found = []
    for path in others:
        other = open_bundle(path)
        theirs, front = open_cores(other), get_family(other.manifest.family).frontend(other)
        got = [choose(theirs, rows_of(front, past.text, past.voice, sampling)[0], past) for past in pasts]
        found.append(agreement(wanted, got))
    return found
