"""Greedy codes of llama.cpp's talker and code predictor against both oracles, as test_parity_greedy has it for the default."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from bundles import ROOT, prune, source_key
from ouzel.adapters import TalkerAdapter, TalkerSampling
from ouzel.autoregressive import ArTalker
from ouzel.bundle import Bundle, BundleWriter, open_bundle
from ouzel.models.base import Frontend
from ouzel.models.registry import get_family
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.llama_cpp import RUNTIME
from test_parity_greedy import CASES, GOLDEN, SWITCHES, checkpoint, digest, rows_of, spoken

ONE = StageOptions(threads=1)


@cache
def bundle(task: str) -> Bundle:
    """Front end, talker and predictor of the tiny checkpoint in float32; kept in build/ while the sources are the same."""
    import torch

    torch.set_num_threads(1)
    folder = ROOT / "build" / "test-llama-cpp"
    out = folder / f"{source_key()}-{task}"
    if not out.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        family = get_family("qwen3_tts")
        loaded = family.read_checkpoint(checkpoint(task))
        with BundleWriter(out) as writer:
            writer.describe(family=family.name)
            family.write_frontend(loaded, writer, "fp32", lambda label, done: None)
            RUNTIME.convert(family.networks(loaded), writer, "fp32", "fp32", lambda label, done: None)
        prune(folder, out)
    return open_bundle(out)


@cache
def loaded(task: str) -> tuple[TalkerAdapter, Frontend]:
    made = bundle(task)
    core = RUNTIME.load_talker(made, made.artifact("talker"), ONE)
    predictor = RUNTIME.load_predictor(made, made.artifact("predictor"), ONE)
    talker = ArTalker(core, predictor, made.array("tables/codec.npy"), made.array("tables/residual.npy"))
    return talker, get_family("qwen3_tts").frontend(made)


@pytest.mark.parametrize("oracle", SWITCHES)
@pytest.mark.parametrize("case", CASES.CASES, ids=lambda case: case.name)
def test_greedy_codes_equal_the_oracle(case, oracle: str):
    golden = np.load(GOLDEN / f"{oracle}_{case.name}.npz")
    assert str(golden["checkpoint"]) == digest(case.task), "the random checkpoint has changed: run tools/oracle/regenerate.sh"
    talker, frontend = loaded(case.task)
    sampling = replace(TalkerSampling(), repetition_penalty=case.penalty, max_tokens=CASES.FRAMES, **SWITCHES[oracle]).greedy()
    codes = spoken(talker, rows_of(case, frontend), sampling)
    assert len(golden["codes"]) >= 100
    np.testing.assert_array_equal(codes, golden["codes"])
