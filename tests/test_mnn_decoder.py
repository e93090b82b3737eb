"""The codec decoder on MNN: parity at any chunking, states that do not mix, and what it refuses."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

from decoder_case import REQUIRED_DB, chunks, golden_checkpoint, read_golden, snr
from ouzel.adapters import DecoderAdapter
from ouzel.errors import SynthesisError, UsageError
from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.network.decoder import build_decoder
from ouzel.models.qwen3_tts.random_checkpoint import write_random_checkpoint
from ouzel.runtimes.mnn.convert import to_mnn
from ouzel.runtimes.mnn.decoder import MnnDecoder
from ouzel.runtimes.onnxruntime.export_decoder import export_decoder
from test_ort_decoder import run

torch.set_num_threads(1)


def opened(network, folder):
    export_decoder(network, folder)
    files = to_mnn(folder / "decoder.onnx", folder / "decoder.mnn", "fp32")
    return MnnDecoder(folder / files[0], network.spec, threads=1)


@pytest.fixture(scope="module")
def golden():
    return read_golden()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mnn-tiny")
    return opened(build_decoder(golden_checkpoint(folder), max_new=16), folder)


@pytest.fixture(scope="module")
def nano(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mnn-nano")
    write_random_checkpoint(folder / "nano", size="nano")
    return opened(build_decoder(Checkpoint(folder / "nano"), max_new=30), folder)


@pytest.fixture
def codes(nano):
    return np.random.default_rng(3).integers(0, nano.meta.codebook_size, (60, 16))


@pytest.mark.parametrize("size", [1, 4, 25])
def test_any_chunking_equals_the_official_decode(tiny, golden, size):
    samples = run(tiny, golden.codes, chunks(len(golden.codes), size))
    assert samples.dtype == np.float32
    assert golden.worst_db(samples) >= REQUIRED_DB


def test_it_is_a_decoder_adapter(tiny):
    assert isinstance(tiny, DecoderAdapter)
    assert (tiny.sample_rate, tiny.samples_per_frame, tiny.left_context_frames) == (24_000, 1920, 0)


def test_a_reference_is_the_past_without_its_samples(nano, codes):
    primed = run(nano, codes[25:], chunks(35, 7), nano.start(codes[:25]))
    whole = run(nano, codes, [slice(None)])
    assert snr(primed, whole[25 * 1920 :]) >= REQUIRED_DB
    assert snr(run(nano, codes[25:], [slice(None)]), whole[25 * 1920 :]) < 60, "the reference must matter"


def test_equal_chunks_give_equal_bits(nano, codes):
    pieces = chunks(60, None)
    assert np.array_equal(run(nano, codes, pieces), run(nano, codes, pieces))


def test_interleaved_states_do_not_mix(nano, codes):
    other = codes[::-1].copy()
    alone = [run(nano, codes, chunks(60, 4)), run(nano, other, chunks(60, 5))]
    states, parts = [nano.start(), nano.start()], ([], [])
    for i in range(15):
        for state, rows, out, size in zip(states, (codes, other), parts, (4, 5), strict=True):
            piece = rows[i * size : (i + 1) * size]
            if len(piece):
                out.append(nano.decode(state, piece))
    assert np.array_equal(np.concatenate(parts[0]), alone[0])
    assert np.array_equal(np.concatenate(parts[1]), alone[1])


def test_a_clone_goes_on_by_itself(nano, codes):
    primed = nano.start(codes[:20])
    twin = primed.clone()
    wanted = run(nano, codes[20:], chunks(40, 8), nano.start(codes[:20]))
    nano.decode(primed, codes[:3])
    assert np.array_equal(run(nano, codes[20:], chunks(40, 8), twin), wanted)
    assert (primed.frames, twin.frames) == (23, 60)


def test_results_belong_to_the_caller(nano, codes):
    state = nano.start()
    kept = nano.decode(state, codes[:5])
    copy = kept.copy()
    nano.decode(state, codes[5:10])
    assert np.array_equal(kept, copy)


@pytest.mark.parametrize("value", [-1, 256])
def test_ids_outside_the_codebook_are_named_and_move_nothing(nano, codes, value):
    state = nano.start(codes[:10])
    wrong = codes[10:20].copy()
    wrong[7, 3] = value
    with pytest.raises(SynthesisError, match=rf"Code {value} in frame 7, codebook 3 .* 0\.\.255"):
        nano.decode(state, wrong)
    assert state.frames == 10
    assert np.array_equal(nano.decode(state, codes[10:20]), nano.decode(nano.start(codes[:10]), codes[10:20]))


def test_codes_of_another_shape_are_refused(nano):
    with pytest.raises(UsageError, match=r"\(frames >= 1, 16\)"):
        nano.decode(nano.start(), np.zeros((4, 15), np.int64))


def test_a_state_with_no_numbers_spoils_no_other(nano, codes):
    wanted = nano.decode(nano.start(), codes[:5])
    spoilt = nano.start(codes[:10])
    for array in spoilt.tensors().values():
        array.fill(np.nan)
    with pytest.raises(SynthesisError, match="from frame 10 of the utterance"):
        nano.decode(spoilt, codes[10:12])
    assert np.array_equal(nano.decode(nano.start(), codes[:5]), wanted)


def test_other_python_threads_run_while_it_decodes(nano, codes):
    """A counter on another thread moves during a call; a module of MNN's would hold it up."""
    naps, over = [], threading.Event()
    thread = threading.Thread(target=lambda: [naps.append(1) for _ in iter(lambda: over.wait(0.0005), True)])
    nano.decode(nano.start(), codes[:30])
    thread.start()
    during = 0
    for _ in range(20):  # one run may be over before the other thread is let in
        before = len(naps)
        nano._session.run()
        during += len(naps) - before
        if during:
            break
    over.set()
    thread.join()
    assert during > 0
