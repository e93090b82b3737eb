"""Greedy codes on MNN against both oracles, speech from a converted bundle, and a mixture with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import ouzel
from bundles import converted
from decoder_case import snr
from ouzel.adapters import TalkerAdapter, TalkerSampling
from ouzel.api.load import load_stages
from ouzel.bundle import open_bundle
from ouzel.models.base import Frontend
from ouzel.models.registry import get_family
from ouzel.pipeline import load_deploy
from test_parity_greedy import CASES, GOLDEN, SWITCHES, checkpoint, digest, rows_of, spoken


@cache
def loaded(task: str) -> tuple[TalkerAdapter, Frontend]:
    bundle = open_bundle(converted(checkpoint(task), runtimes=("mnn",)))
    family = get_family(bundle.manifest.family)
    config = load_deploy(family.pipeline().default_deploy, pipeline=family.pipeline())
    talker, _ = load_stages(bundle, config, threads=1)
    return talker, family.frontend(bundle)


# Of the tasks that the matrix of all runtimes leaves out; with CASES.CASES here all sixteen pass, in six minutes.
@pytest.mark.parametrize(
    "case", [case for case in CASES.CASES if case.name in ("base_icl", "base_russian")], ids=lambda c: c.name
)
def test_greedy_codes_equal_the_official_ones(case) -> None:
    golden = np.load(GOLDEN / f"official_{case.name}.npz")
    assert str(golden["checkpoint"]) == digest(case.task), "the random checkpoint has changed: run tools/oracle/regenerate.sh"
    talker, frontend = loaded(case.task)
    limits = {"repetition_penalty": case.penalty, "max_tokens": CASES.FRAMES, **SWITCHES["official"]}
    codes = spoken(talker, rows_of(case, frontend), replace(TalkerSampling(), **limits).greedy())
    np.testing.assert_array_equal(codes, golden["codes"])


@pytest.fixture(scope="module")
def both(nano_checkpoint: Callable[[str], Path]) -> Path:
    """A bundle for MNN and for ONNX Runtime, fp32."""
    return converted(nano_checkpoint("custom_voice"), runtimes=("mnn", "onnxruntime"))


def say(bundle: Path, talker: str, decoder: str) -> np.ndarray:
    overrides = {0: {"edge": {"runtime": talker}}, 1: {"edge": {"runtime": decoder}}}
    with ouzel.load(bundle, threads=1, overrides=overrides, stuck=False, warm_up=False) as voice:
        return voice.say("One two three.", seed=5, max_new_tokens=30).samples


def test_any_mixture_speaks_the_same(both: Path) -> None:
    wanted = say(both, "onnxruntime", "onnxruntime")
    for talker, decoder in (("mnn", "mnn"), ("mnn", "onnxruntime"), ("onnxruntime", "mnn")):
        assert snr(say(both, talker, decoder), wanted) > 80
