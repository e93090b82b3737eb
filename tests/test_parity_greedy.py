"""Greedy codes and prompt rows against both oracles: the official qwen-tts package and the real vLLM-Omni.

tests/golden/greedy/{official,omni}_<case>.npz come from tools/oracle/regenerate.sh; the checkpoints are this repository's own
random ones (size tiny, seed 0, float32), rebuilt here and identified by their sha256.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from bundles import converted
from conftest import cached_checkpoint
from ouzel.adapters import PromptRows, TalkerAdapter, TalkerSampling
from ouzel.api.load import load_stages
from ouzel.bundle import open_bundle
from ouzel.models.base import Frontend
from ouzel.models.registry import get_family
from ouzel.pipeline import load_deploy
from ouzel.request import SpeechRequest
from ouzel.schedule import ScheduleSpec

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "golden" / "greedy"


def oracle_cases():
    spec = importlib.util.spec_from_file_location("oracle_cases", ROOT / "tools" / "oracle" / "cases.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["oracle_cases"] = module
    spec.loader.exec_module(module)
    return module


CASES = oracle_cases()
# What each oracle does besides its own limits (contract 3.8, 4.6).
SWITCHES = {
    "official": {"allow_id_zero": True, "penalise_id_one": False},
    "omni": {"allow_id_zero": False, "penalise_id_one": True},
}


@cache
def checkpoint(task: str) -> Path:
    return cached_checkpoint("tiny", task, dtype="f32")


@cache
def loaded(task: str) -> tuple[TalkerAdapter, Frontend]:
    bundle = open_bundle(converted(checkpoint(task)))
    family = get_family(bundle.manifest.family)
    config = load_deploy(family.pipeline().default_deploy, pipeline=family.pipeline())
    talker, _ = load_stages(bundle, config, threads=1)
    return talker, family.frontend(bundle)


@cache
def digest(task: str) -> str:
    return hashlib.sha256((checkpoint(task) / "model.safetensors").read_bytes()).hexdigest()


def rows_of(case, frontend: Frontend) -> PromptRows:
    request = SpeechRequest(
        case.text,
        voice=case.voice,
        language=case.language,
        instructions=case.instruct,
        non_streaming_mode=case.layout,
        speaker_embedding=CASES.vector(frontend.hidden_size) if case.task == "base" else None,
        ref_codes=CASES.reference_codes() if case.icl else None,
        ref_text=case.ref_text,
    )
    return frontend.rows(frontend.resolve(request), case.text)


def spoken(talker: TalkerAdapter, rows: PromptRows, sampling: TalkerSampling) -> np.ndarray:
    state, frames = talker.prefill(rows, sampling), []
    while (frame := talker.step([state])[0]).codes is not None:
        frames.append(frame.codes)
    return np.stack(frames)


@pytest.mark.parametrize("oracle", SWITCHES)
@pytest.mark.parametrize("case", CASES.CASES, ids=lambda case: case.name)
def test_greedy_codes_equal_the_oracle(case, oracle: str):
    golden = np.load(GOLDEN / f"{oracle}_{case.name}.npz")
    assert str(golden["checkpoint"]) == digest(case.task), "the random checkpoint has changed: run tools/oracle/regenerate.sh"
    talker, frontend = loaded(case.task)
    rows = rows_of(case, frontend)
    assert rows.prefill.shape == golden["prompt"].shape
    assert np.abs(rows.prefill - golden["prompt"]).max() <= 1e-5
    sampling = replace(TalkerSampling(), repetition_penalty=case.penalty, max_tokens=CASES.FRAMES, **SWITCHES[oracle]).greedy()
    codes = spoken(talker, rows, sampling)
    assert len(golden["codes"]) >= 100
    np.testing.assert_array_equal(codes, golden["codes"])


def test_the_cases_cover_every_task_with_four_texts():
    texts = {task: {c.text for c in CASES.CASES if c.task == task} for task in ("custom_voice", "base", "voice_design")}
    assert min(len(t) for t in texts.values()) >= 4


def test_a_case_tells_the_penalty_rules_apart():
    official, omni = (np.load(GOLDEN / f"{oracle}_cv_seen_one.npz")["codes"] for oracle in SWITCHES)
    assert official[2, 0] == 1
    assert omni[2, 0] != 1


@pytest.mark.parametrize("case", CASES.CASES, ids=lambda case: case.name)
def test_chunks_equal_the_running_server(case):
    """The server's own deploy values, 1 then 25; reference frames ride in front of the first chunk."""
    golden = np.load(GOLDEN / f"omni_{case.name}.npz")
    run, frames = ScheduleSpec.parse("fixed:1/25").start(), len(golden["codes"])
    shipped = [n for i in range(1, frames + 1) if (n := run.offer(i, 0.0))]
    tail = run.offer(frames, 0.0, finished=True)
    shipped += [tail] if tail else []
    shipped[0] += len(CASES.reference_codes()) if case.icl else 0
    assert shipped == golden["chunks"].tolist()
