"""The codec decoder on ExecuTorch: parity at any chunking, states that do not mix, and what it refuses."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

import executorch_case
from decoder_case import REQUIRED_DB, chunks, snr
from ouzel.adapters import DecoderAdapter
from ouzel.errors import BundleError, SynthesisError, UsageError
from ouzel.runtimes.executorch import RUNTIME
from ouzel.runtimes.executorch.decoder import ExecuTorchDecoder

torch.set_num_threads(1)
FRAMES = 60


@pytest.fixture(scope="module")
def decoder() -> ExecuTorchDecoder:
    bundle = executorch_case.bundle("decoder")
    return RUNTIME.load_decoder(bundle, bundle.artifact("decoder"), executorch_case.ONE)


@cache
def codes() -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (FRAMES, 16))


@cache
def wanted() -> np.ndarray:
    network, samples = executorch_case.network("decoder"), []
    state = network.zero_state()
    with torch.no_grad():
        for piece in chunks(FRAMES, network.spec["max_new"]):
            out, *state = network(torch.from_numpy(codes()[piece]), *state)
            samples.append(out.numpy())
    return np.concatenate(samples)


def run(decoder, rows, pieces, state=None):
    state = decoder.start() if state is None else state
    return np.concatenate([decoder.decode(state, rows[piece]) for piece in pieces])


@pytest.mark.parametrize("size", [1, 4, 25, None])
def test_any_chunking_equals_the_torch_network(decoder, size):
    samples = run(decoder, codes(), chunks(FRAMES, size))
    assert samples.dtype == np.float32
    assert snr(samples, wanted()) >= REQUIRED_DB


def test_it_is_a_decoder_adapter_that_states_its_bound(decoder):
    assert isinstance(decoder, DecoderAdapter)
    assert (decoder.sample_rate, decoder.samples_per_frame, decoder.left_context_frames) == (24_000, 1920, 0)
    assert executorch_case.bundle("decoder").artifact("decoder").meta["max_new"] == 4


def test_a_reference_is_the_past_without_its_samples(decoder):
    primed = run(decoder, codes()[25:], chunks(35, 7), decoder.start(codes()[:25]))
    assert snr(primed, wanted()[25 * 1920 :]) >= REQUIRED_DB


def test_interleaved_states_do_not_mix(decoder):
    other = codes()[::-1].copy()
    alone = [run(decoder, rows, chunks(FRAMES, 4)) for rows in (codes(), other)]
    states, parts = [decoder.start(), decoder.start()], ([], [])
    for piece in chunks(FRAMES, 4):
        for state, rows, out in zip(states, (codes(), other), parts, strict=True):
            out.append(decoder.decode(state, rows[piece]))
    for mine, due in zip(parts, alone, strict=True):
        np.testing.assert_array_equal(np.concatenate(mine), due)


def test_a_clone_goes_on_by_itself(decoder):
    primed = decoder.start(codes()[:20])
    twins = [primed.clone(), primed.clone()]
    due = run(decoder, codes()[20:], chunks(40, 8), decoder.start(codes()[:20]))
    np.testing.assert_array_equal(run(decoder, codes()[20:], chunks(40, 8), twins[0]), due)
    decoder.decode(primed, codes()[:3])
    np.testing.assert_array_equal(run(decoder, codes()[20:], chunks(40, 8), twins[1]), due)
    assert (primed.frames, twins[0].frames) == (23, 60)


def test_results_belong_to_the_caller(decoder):
    state = decoder.start()
    kept = decoder.decode(state, codes()[:5])
    copy = kept.copy()
    decoder.decode(state, codes()[5:10])
    np.testing.assert_array_equal(kept, copy)
    kept[:] = np.nan
    assert np.isfinite(decoder.decode(state, codes()[10:15])).all()


@pytest.mark.parametrize("value", [-1, 256, 2150])
def test_ids_outside_the_codebook_are_named_and_move_nothing(decoder, value):
    state = decoder.start(codes()[:10])
    wrong = codes()[10:20].copy()
    wrong[7, 3] = value
    with pytest.raises(SynthesisError, match=rf"Code {value} in frame 7, codebook 3 .* 0\.\.255"):
        decoder.decode(state, wrong)
    assert state.frames == 10
    due = decoder.decode(decoder.start(codes()[:10]), codes()[10:20])
    np.testing.assert_array_equal(decoder.decode(state, codes()[10:20]), due)


@pytest.mark.parametrize("shape", [(16,), (4, 15), (0, 16), (1, 4, 16)])
def test_codes_of_another_shape_are_refused(decoder, shape):
    with pytest.raises(UsageError, match=r"\(frames >= 1, 16\)"):
        decoder.decode(decoder.start(), np.zeros(shape, np.int64))


def test_what_is_no_number_names_the_frame(decoder):
    state = decoder.start(codes()[:10])
    state.tensors()["keys.0"][...] = np.nan
    with pytest.raises(SynthesisError, match="from frame 10 of the utterance on"):
        decoder.decode(state, codes()[10:13])


def test_meta_of_another_decoder_is_refused():
    bundle = executorch_case.bundle("decoder")
    path, meta = bundle.path("executorch/decoder.pte"), dict(bundle.artifact("decoder").meta)
    with pytest.raises(BundleError, match="'groups' in the manifest is None"):
        ExecuTorchDecoder(path, {name: meta[name] for name in meta if name != "groups"})
    with pytest.raises(BundleError, match=r"codes of decode is \(4, 16\), but the manifest says \(8, 16\)"):
        ExecuTorchDecoder(path, meta | {"max_new": 8})
    with pytest.raises(BundleError, match=r"takes \d+ tensors and gives \d+, but the manifest says"):
        ExecuTorchDecoder(path, meta | {"state": meta["state"][:-1]})
