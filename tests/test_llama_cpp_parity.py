"""Greedy codes of llama.cpp's talker and code predictor against both oracles, as test_parity_greedy has it for the default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import llama_case
from bundles import converted
from ouzel.adapters import TalkerAdapter, TalkerSampling
from ouzel.autoregressive import ArTalker
from ouzel.bundle import open_bundle
from ouzel.models.base import Frontend
from ouzel.models.registry import get_family
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.llama_cpp import RUNTIME
from test_parity_greedy import CASES, GOLDEN, SWITCHES, checkpoint, digest, rows_of, spoken

ONE = StageOptions(threads=1)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[TalkerAdapter, Frontend]]:
    """Task -> the tiny checkpoint's talker and code predictor in float32, and the front end of the default runtime's bundle."""

    @cache
    def load(task: str) -> tuple[TalkerAdapter, Frontend]:
        family = get_family("qwen3_tts")
        networks, whole = family.networks(family.read_checkpoint(checkpoint(task))), open_bundle(converted(checkpoint(task)))
        tables = whole.array("tables/codec.npy"), whole.array("tables/residual.npy")
        out = tmp_path_factory.mktemp("parity") / task
        made = llama_case.write_bundle(out, tables, "fp32", talker=networks.talker, predictor=networks.predictor)
        core = RUNTIME.load_talker(made, made.artifact("talker"), ONE)
        predictor = RUNTIME.load_predictor(made, made.artifact("predictor"), ONE)
        return ArTalker(core, predictor, *tables), family.frontend(whole)

    return load


@pytest.mark.parametrize("oracle", SWITCHES)
@pytest.mark.parametrize("case", CASES.CASES, ids=lambda case: case.name)
def test_greedy_codes_equal_the_oracle(loaded, case, oracle: str):
    golden = np.load(GOLDEN / f"{oracle}_{case.name}.npz")
    assert str(golden["checkpoint"]) == digest(case.task), "the random checkpoint has changed: run tools/oracle/regenerate.sh"
    talker, frontend = loaded(case.task)
    sampling = replace(TalkerSampling(), repetition_penalty=case.penalty, max_tokens=CASES.FRAMES, **SWITCHES[oracle]).greedy()
    codes = spoken(talker, rows_of(case, frontend), sampling)
    assert len(golden["codes"]) >= 100
    np.testing.assert_array_equal(codes, golden["codes"])
