"""Greedy codes of both language models on ExecuTorch, in fp32, are the official package's; the matrix has the tiny checkpoint."""

from __future__ import annotations

import json

import numpy as np

import ar_case
import executorch_case
from ouzel.adapters import PromptRows, TalkerSampling
from ouzel.autoregressive import ArTalker
from ouzel.runtimes.executorch import RUNTIME


def test_greedy_codes_are_those_of_the_official_package():
    bundles = [executorch_case.bundle(stage) for stage in ("talker", "predictor")]
    core = RUNTIME.load_talker(bundles[0], bundles[0].artifact("talker"), executorch_case.ONE)
    predictor = RUNTIME.load_predictor(bundles[1], bundles[1].artifact("predictor"), executorch_case.ONE)
    talker = ArTalker(core, predictor, bundles[0].array("tables/codec.npy"), bundles[0].array("tables/residual.npy"))
    golden, meta = np.load(ar_case.GOLDEN / "nano.npz"), json.loads((ar_case.GOLDEN / "nano.json").read_text())
    rows = PromptRows(golden["prompt"], np.zeros((0, 64), np.float32), golden["pad"], text_tokens=1)
    limits = {"repetition_penalty": meta["repetition_penalty"], "max_tokens": meta["max_tokens"], "allow_id_zero": True}
    state, codes = talker.prefill(rows, TalkerSampling(**limits).greedy()), []
    while (frame := talker.step([state])[0]).codes is not None:
        codes.append(frame.codes)
    assert len(codes) >= 100
    np.testing.assert_array_equal(codes, golden["codes"])
