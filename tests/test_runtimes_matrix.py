"""Every runtime that can be used here x every stage that it offers, the others being ONNX Runtime's: codes, samples, states.

A runtime whose arithmetic is approximate says so, and why, in an artifact's meta: "parity": {"frames": leading frames that are
equal, "db": signal-to-noise ratio of the decoder, "why": "…"}. Without that every frame is equal, and the decoder at 80 dB.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import second_runtime
from bundles import converted
from conftest import cached_checkpoint
from decoder_case import chunks, snr
from ouzel.adapters import TalkerSampling
from ouzel.api.load import configure
from ouzel.api.placement import Loaded, place_stages
from ouzel.bundle import open_bundle
from ouzel.errors import SynthesisError, UsageError
from ouzel.models.registry import get_family
from ouzel.runtimes.base import Offer
from ouzel.runtimes.registry import get_runtime, runtimes
from test_parity_greedy import CASES, GOLDEN, SWITCHES, rows_of, spoken

BASE = "onnxruntime"
EXACT = ("fp32", "f32", "fp16", "f16", "bf16", "int8", "q8_0")  # the nearest to fp32 first
DB = 80.0
FRAMES = 60


def offers() -> dict[str, Offer]:
    """Of each runtime that can be used here, and of a second one, so that there are two whatever is installed."""
    found = {name: get_runtime(name) for name in runtimes()}
    here = {name: runtime.offer for name, runtime in found.items() if runtime.status().available}
    return here | {second_runtime.NAME: second_runtime.SecondRuntime.offer}


def cells(*stages: str) -> list[Any]:
    return [pytest.param(name, s, id=f"{name}-{s}") for name, offer in offers().items() for s in offer.stages if s in stages]


def nearest(offered: tuple[str, ...]) -> str:
    return next((name for name in EXACT if name in offered), offered[0])


@pytest.fixture(scope="module", autouse=True)
def second():
    with second_runtime.registered() as runtime:
        yield runtime


@cache
def bundle_of(name: str) -> Path:
    """The tiny checkpoint of the golden codes for ONNX Runtime in fp32, and for the runtime in what is nearest to it."""
    names = (BASE,) if name == BASE else (BASE, name)
    weights, decoder = {BASE: "fp32"}, {BASE: "fp32"}
    for stage, offered in get_runtime(name).offer.stages.items():
        (decoder if stage == "decoder" else weights)[name] = nearest(offered)
    return converted(checkpoint(), runtimes=names, weights=weights, decoder=decoder)


@cache
def checkpoint() -> Path:
    return cached_checkpoint("tiny", "custom_voice", dtype="f32")


@cache
def loaded(name: str, stage: str) -> Loaded:
    bundle = open_bundle(bundle_of(name))
    places = {"talker": BASE, "predictor": BASE, "decoder": BASE} | {stage: name}
    found = place_stages(bundle, configure(None, None, get_family(bundle.manifest.family).pipeline(), None, 1, places))
    assert {part: at.runtime for part, at in found.placed.items()} == places
    return found


def parity(name: str, stage: str) -> dict[str, Any]:
    stated = open_bundle(bundle_of(name)).artifact(stage, name).meta.get("parity", {})
    assert not stated or stated["why"]
    return stated


@cache
def case() -> tuple[Any, Any, np.ndarray]:
    """(rows, sampling, golden codes) of a text in the official package."""
    chosen = next(c for c in CASES.CASES if c.task == "custom_voice")
    bundle = open_bundle(bundle_of(BASE))
    rows = rows_of(chosen, get_family(bundle.manifest.family).frontend(bundle))
    sampling = replace(TalkerSampling(), repetition_penalty=chosen.penalty, max_tokens=CASES.FRAMES, **SWITCHES["official"])
    return rows, sampling.greedy(), np.load(GOLDEN / f"official_{chosen.name}.npz")["codes"]


@pytest.mark.parametrize(("name", "stage"), cells("talker", "predictor"))
def test_greedy_codes_equal_the_golden_ones(name, stage):
    rows, sampling, golden = case()
    equal = parity(name, stage).get("frames", len(golden))
    codes = spoken(loaded(name, stage).talker, rows, sampling)
    np.testing.assert_array_equal(codes[:equal], golden[:equal])
    if equal == len(golden):
        assert len(codes) == len(golden)


@pytest.mark.parametrize(("name", "stage"), cells("talker", "predictor"))
def test_a_state_knows_of_no_other(name, stage):
    """A dropped state, a failed prompt and a neighbour that is stepped in between change nothing."""
    rows, sampling, _ = case()
    talker = loaded(name, stage).talker
    alone = [spoken(talker, rows, replace(sampling, max_tokens=20)), None]
    sampled = replace(TalkerSampling(), max_tokens=20, seed=3, allow_id_zero=True)
    alone[1] = spoken(talker, rows, sampled)
    dropped = talker.prefill(rows, sampling)
    talker.step([dropped])
    del dropped
    with pytest.raises((UsageError, SynthesisError)):
        talker.prefill(replace(rows, prefill=np.zeros((9000, rows.prefill.shape[1]), np.float32)), sampling)
    states = [talker.prefill(rows, replace(sampling, max_tokens=20)), talker.prefill(rows, sampled)]
    found: list[list[np.ndarray]] = [[], []]
    for _ in range(20):
        for mine, state in zip(found, states, strict=True):
            (frame,) = talker.step([state])
            if frame.codes is not None:
                mine.append(frame.codes)
    for mine, due in zip(found, alone, strict=True):
        np.testing.assert_array_equal(np.stack(mine), due)


@cache
def codes_and_samples() -> tuple[np.ndarray, np.ndarray]:
    """Random codes and what the fp32 torch network makes of them."""
    import torch

    torch.set_num_threads(1)
    family = get_family("qwen3_tts")
    network = family.networks(family.read_checkpoint(checkpoint())).decoder
    codes = np.random.default_rng(0).integers(0, network.spec["codebook_size"], (FRAMES, network.spec["groups"]))
    state, parts = network.zero_state(), []
    with torch.inference_mode():
        for start in range(0, FRAMES, network.spec["max_new"]):
            samples, *state = network(torch.from_numpy(codes[start : start + network.spec["max_new"]]), *state)
            parts.append(samples.numpy())
    return codes, np.concatenate(parts)


def decoded(decoder, codes, size) -> np.ndarray:
    state = decoder.start()
    return np.concatenate([decoder.decode(state, codes[piece]) for piece in chunks(len(codes), size)])


@pytest.mark.parametrize("size", [1, 4, 25])
@pytest.mark.parametrize(("name", "stage"), cells("decoder"))
def test_decoded_samples_equal_the_torch_networks(name, stage, size):
    codes, wanted = codes_and_samples()
    found = decoded(loaded(name, stage).decoder, codes, size)
    assert found.dtype == np.float32
    assert snr(found, wanted) >= parity(name, stage).get("db", DB)


@pytest.mark.parametrize(("name", "stage"), cells("decoder"))
def test_a_decoder_state_knows_of_no_other(name, stage):
    codes, _ = codes_and_samples()
    decoder, other = loaded(name, stage).decoder, codes[::-1].copy()
    alone = decoded(decoder, codes[:24], 4), decoded(decoder, other[:24], 4)
    dropped = decoder.start()
    decoder.decode(dropped, other[:7])
    del dropped
    for wrong in (codes[:3] + 100_000, codes[:0], codes[:3, :4]):
        with pytest.raises((UsageError, SynthesisError)):
            decoder.decode(decoder.start(), wrong)
    states = decoder.start(), decoder.start()
    parts: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for piece in chunks(24, 4):
        for mine, state, rows in zip(parts, states, (codes, other), strict=True):
            mine.append(decoder.decode(state, rows[piece]))
    for mine, due in zip(parts, alone, strict=True):
        np.testing.assert_array_equal(np.concatenate(mine), due)
