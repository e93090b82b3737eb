"""The codec decoder on ONNX Runtime: parity at any chunking, states that do not mix, and what it refuses."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch

from decoder_case import REQUIRED_DB, chunks, golden_checkpoint, read_golden, snr
from ouzel.adapters import DecoderAdapter
from ouzel.errors import BundleError, SynthesisError, UsageError
from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.network.decoder import build_decoder
from ouzel.models.qwen3_tts.random_checkpoint import write_random_checkpoint
from ouzel.runtimes.onnxruntime.decoder import OrtDecoder
from ouzel.runtimes.onnxruntime.export_decoder import export_decoder

torch.set_num_threads(1)


def opened(network, folder):
    files = export_decoder(network, folder)
    return OrtDecoder(folder / files[0], network.spec, threads=1)


def run(decoder, codes, pieces, state=None):
    state = decoder.start() if state is None else state
    return np.concatenate([decoder.decode(state, codes[piece]) for piece in pieces])


@pytest.fixture(scope="module")
def golden():
    return read_golden()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The golden checkpoint's decoder, and its folder."""
    folder = tmp_path_factory.mktemp("tiny")
    return opened(build_decoder(golden_checkpoint(folder), max_new=16), folder)


@pytest.fixture(scope="module")
def nano_network(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nano-checkpoint") / "nano"
    write_random_checkpoint(folder, size="nano")
    return build_decoder(Checkpoint(folder), max_new=30)


@pytest.fixture(scope="module")
def nano(nano_network, tmp_path_factory):
    return opened(nano_network, tmp_path_factory.mktemp("nano"))


@pytest.fixture
def codes(nano_network):
    return np.random.default_rng(3).integers(0, nano_network.spec["codebook_size"], (60, 16))


@pytest.mark.parametrize("size", [1, 2, 4, 7, 25, None, 300])
def test_any_chunking_equals_the_official_decode(tiny, golden, size):
    samples = run(tiny, golden.codes, chunks(len(golden.codes), size))
    assert samples.shape == (300 * 1920,)
    assert samples.dtype == np.float32
    assert golden.worst_db(samples) >= REQUIRED_DB


def test_every_sample_equals_the_torch_network(nano, nano_network, codes):
    with torch.no_grad():
        wanted = np.concatenate([nano_network(torch.from_numpy(codes[:30]), *nano_network.zero_state())[0].numpy()])
    assert snr(run(nano, codes[:30], chunks(30, 7)), wanted) >= REQUIRED_DB


def test_it_is_a_decoder_adapter(tiny):
    assert isinstance(tiny, DecoderAdapter)
    assert (tiny.sample_rate, tiny.samples_per_frame, tiny.left_context_frames) == (24_000, 1920, 0)


def test_a_reference_is_the_past_without_its_samples(nano, codes):
    primed = run(nano, codes[25:], chunks(35, 7), nano.start(codes[:25]))
    whole = run(nano, codes, [slice(None)])
    assert len(primed) == 35 * 1920
    assert snr(primed, whole[25 * 1920 :]) >= REQUIRED_DB
    assert snr(run(nano, codes[25:], [slice(None)]), whole[25 * 1920 :]) < 60, "the reference must matter"


def test_an_empty_reference_is_none(nano, codes):
    assert np.array_equal(run(nano, codes, [slice(9)], nano.start(codes[:0])), run(nano, codes, [slice(9)]))


def test_equal_chunks_give_equal_bits(nano, nano_network, codes, tmp_path):
    pieces = chunks(60, None)
    first = run(nano, codes, pieces)
    assert np.array_equal(first, run(nano, codes, pieces))
    assert np.array_equal(first, run(opened(nano_network, tmp_path), codes, pieces))


def test_interleaved_states_do_not_mix(nano, codes):
    other = codes[::-1].copy()
    alone = [run(nano, rows, chunks(60, 4)) for rows in (codes, other)]
    states, parts = [nano.start(), nano.start()], ([], [])
    for piece in chunks(60, 4):
        for state, rows, out in zip(states, (codes, other), parts, strict=True):
            out.append(nano.decode(state, rows[piece]))
    assert np.array_equal(np.concatenate(parts[0]), alone[0])
    assert np.array_equal(np.concatenate(parts[1]), alone[1])


def test_a_clone_goes_on_by_itself(nano, codes):
    primed = nano.start(codes[:20])
    twins = [primed.clone(), primed.clone()]
    wanted = run(nano, codes[20:], chunks(40, 8), nano.start(codes[:20]))
    assert np.array_equal(run(nano, codes[20:], chunks(40, 8), twins[0]), wanted)
    nano.decode(primed, codes[:3])
    assert np.array_equal(run(nano, codes[20:], chunks(40, 8), twins[1]), wanted)
    assert (primed.frames, twins[0].frames) == (23, 60)


def test_results_belong_to_the_caller(nano, codes):
    state = nano.start()
    kept = nano.decode(state, codes[:5])
    copy = kept.copy()
    nano.decode(state, codes[5:10])
    assert np.array_equal(kept, copy)
    kept[:] = np.nan
    assert np.isfinite(nano.decode(state, codes[10:15])).all()


def test_two_thousand_frames_are_as_good_as_the_first(nano):
    codes = np.random.default_rng(4).integers(0, 256, (2000, 16))
    samples = run(nano, codes, chunks(2000, 25))
    # two layers of window 72, the kernel in front and the convolutions behind reach back less than 170 frames
    fresh = run(nano, codes[-200:], chunks(200, 25))
    assert snr(samples[-30 * 1920 :], fresh[-30 * 1920 :]) >= REQUIRED_DB
    assert snr(samples[-200 * 1920 : -190 * 1920], fresh[: 10 * 1920]) < 60, "the fresh start must be told apart"


@pytest.mark.parametrize("dtype", [np.int16, np.uint8, np.int64])
def test_any_integer_type_will_do(nano, codes, dtype):
    assert np.array_equal(nano.decode(nano.start(), codes[:4].astype(dtype)), nano.decode(nano.start(), codes[:4]))
    assert np.array_equal(nano.decode(nano.start(), np.asfortranarray(codes[:4])), nano.decode(nano.start(), codes[:4]))


@pytest.mark.parametrize("value", [-1, 256, 2150])
def test_ids_outside_the_codebook_are_named(nano, codes, value):
    state = nano.start(codes[:10])
    wrong = codes[10:20].copy()
    wrong[7, 3] = value
    with pytest.raises(SynthesisError, match=rf"Code {value} in frame 7, codebook 3 .* 0\.\.255"):
        nano.decode(state, wrong)
    assert state.frames == 10
    assert np.array_equal(nano.decode(state, codes[10:20]), nano.decode(nano.start(codes[:10]), codes[10:20]))


@pytest.mark.parametrize("shape", [(16,), (4, 15), (4, 17), (0, 16), (1, 4, 16)])
def test_codes_of_another_shape_are_refused(nano, shape):
    with pytest.raises(UsageError, match=r"\(frames >= 1, 16\)"):
        nano.decode(nano.start(), np.zeros(shape, np.int64))


@pytest.mark.parametrize("dtype", [np.float32, np.bool_])
def test_codes_that_are_no_integers_are_refused(nano, dtype):
    with pytest.raises(UsageError, match="integer codes"):
        nano.decode(nano.start(), np.zeros((2, 16), dtype))


def test_samples_that_are_no_numbers_name_the_frame(nano, codes):
    state = nano.start(codes[:10])
    state.tensors()["leave"][...] = np.nan
    with pytest.raises(SynthesisError, match="from frame 10 "):
        nano.decode(state, codes[10:20])


def test_a_meta_that_does_not_fit_is_refused(nano_network, tmp_path):
    path = tmp_path / export_decoder(nano_network, tmp_path)[0]
    spec = nano_network.spec
    with pytest.raises(BundleError, match="'groups' in the manifest is None"):
        OrtDecoder(path, {name: spec[name] for name in spec if name != "groups"})
    with pytest.raises(BundleError, match="'max_new' in the manifest is 0"):
        OrtDecoder(path, spec | {"max_new": 0})
    with pytest.raises(BundleError, match="other state tensors"):
        OrtDecoder(path, spec | {"state": spec["state"][1:]})


def test_each_weight_is_stored_once(nano_network, tmp_path):
    graph = onnx.load(tmp_path / export_decoder(nano_network, tmp_path)[0]).graph
    arrays = [onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer]
    large = [array for array in arrays if array.size >= 256]
    assert len({array.tobytes() for array in large}) == len(large)
    assert sum(a.size for a in arrays) <= sum(p.numel() for p in nano_network.parameters())
