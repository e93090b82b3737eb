"""Residual units that add nothing are left out of the network, with their state, and nothing else changes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from decoder_case import REQUIRED_DB, chunks, snr
from ouzel.models.qwen3_tts.config import CodecConfig
from ouzel.models.qwen3_tts.network import decoder_waveform
from ouzel.models.qwen3_tts.network.decoder import CodecDecoder
from test_decoder_network import OTHER, random_tensors, run

torch.set_num_threads(1)

FRAMES = 20


def network(zeroed, *, level=False, rates=(3, 2)):
    """A random decoder whose units `zeroed`, (block, place), add nothing. level: all Snakes of equal alpha."""
    dims = dataclasses.replace(OTHER, upsample_rates=rates)
    tensors = random_tensors(dims)
    for block, place in zeroed:
        for part in ("weight", "bias"):
            tensors[f"decoder.{block + 1}.block.{place + 2}.conv2.conv.{part}"].zero_()
    for name in tensors:
        if level and name.endswith(".alpha"):
            tensors[name].zero_()
    return CodecDecoder(CodecConfig(dims, 16_000, 6 * int(np.prod(rates))), tensors, max_new=FRAMES)


@pytest.fixture
def everything(monkeypatch):
    """`network`, but with the identities carried out."""

    def build(zeroed, **options):
        with monkeypatch.context() as patched:
            patched.setattr(decoder_waveform, "_units", lambda tensors, prefix: [0, 1, 2])
            return network(zeroed, **options)

    return build


def codes():
    return np.random.default_rng(5).integers(0, OTHER.codebook_size, (FRAMES, OTHER.num_quantizers))


CASES = [
    [(0, 0)],
    [(0, 2), (1, 1)],
    [(0, 0), (0, 1), (0, 2)],
    [(1, 0), (1, 1), (1, 2)],
    [(block, place) for block in (0, 1) for place in (0, 1, 2)],
]


@pytest.mark.parametrize("zeroed", CASES)
def test_samples_stay_the_same(everything, zeroed):
    wanted = run(everything(zeroed), codes(), [slice(None)])
    left = network(zeroed)
    assert snr(run(left, codes(), [slice(None)]), wanted) >= REQUIRED_DB, "factors of other Snakes are rounded in other places"
    assert snr(run(left, codes(), chunks(FRAMES, 3)), wanted) >= REQUIRED_DB


@pytest.mark.parametrize("zeroed", CASES)
def test_samples_stay_the_same_to_the_bit_where_no_factor_moves(everything, zeroed):
    wanted = run(everything(zeroed, level=True), codes(), [slice(None)])
    assert np.array_equal(run(network(zeroed, level=True), codes(), [slice(None)]), wanted)


def test_weights_and_state_of_the_unit_are_gone(everything):
    zeroed = [(0, 1), (1, 0), (1, 1), (1, 2)]
    left, whole = network(zeroed), everything(zeroed)
    gone = set(whole.layout) - set(left.layout)
    assert gone == {"unit.0.1", "unit.1.0", "unit.1.1", "unit.1.2"}
    assert list(left.layout) == [name for name in whole.layout if name not in gone]
    assert [entry["name"] for entry in left.spec["state"]] == list(left.layout)
    assert [len(block.units) for block in left.waveform.blocks] == [2, 0]
    assert sum(p.numel() for p in left.parameters()) < sum(p.numel() for p in whole.parameters())


@pytest.mark.parametrize("part", ["weight", "bias"])
def test_a_unit_that_adds_anything_stays(part):
    tensors = random_tensors(OTHER)
    name = "decoder.1.block.2.conv2.conv."
    for zeroed in ("weight", "bias"):
        tensors[f"{name}{zeroed}"].zero_()
    tensors[f"{name}{part}"].view(-1)[3] = 1e-30
    assert CodecDecoder(CodecConfig(OTHER, 16_000, 36), tensors).waveform.units == [[0, 1, 2], [0, 1, 2]]
