"""The codec decoder on ggml: parity at any chunking, states that do not mix, and what it refuses."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from decoder_case import REQUIRED_DB, chunks, golden_checkpoint, read_golden, snr
from ouzel.adapters import DecoderAdapter
from ouzel.bundle import Artifact, Bundle, BundleWriter, open_bundle
from ouzel.errors import BundleError, SynthesisError, UsageError
from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.network.decoder import build_decoder
from ouzel.models.qwen3_tts.random_checkpoint import write_random_checkpoint
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.llama_cpp import RUNTIME
from ouzel.runtimes.llama_cpp.decoder import LlamaDecoder
from ouzel.runtimes.llama_cpp.export_decoder import decoder_meta, export_decoder
from ouzel.runtimes.llama_cpp.gguf_file import GgufFile
from ouzel.runtimes.llama_cpp.gguf_write import Weight, write

torch.set_num_threads(1)
ONE = StageOptions(threads=1)
SCALES = {"ls1.weight": ["attn_out.weight"], "ls2.weight": ["ffn_down.weight"], "gamma": ["pw2.weight", "pw2.bias"]}


def bundled(network: Any, out: Path, storage: str = "fp32") -> Bundle:
    with BundleWriter(out) as writer:
        writer.describe(family="qwen3_tts", tokenizer="hf_bpe", task="CustomVoice")
        export_decoder(network, writer.path("llama_cpp/decoder.gguf"), storage)
        writer.add_artifact("decoder", "llama_cpp", storage, ["llama_cpp/decoder.gguf"], decoder_meta(network))
    return open_bundle(out)


def load(bundle: Bundle, **meta: Any) -> LlamaDecoder:
    artifact = bundle.artifact("decoder")
    return RUNTIME.load_decoder(bundle, replace(artifact, meta={**artifact.meta, **meta}), ONE)


def run(decoder: LlamaDecoder, codes: np.ndarray, pieces: list[slice], state: Any = None) -> np.ndarray:
    state = decoder.start() if state is None else state
    return np.concatenate([decoder.decode(state, codes[piece]) for piece in pieces])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> LlamaDecoder:
    """The golden checkpoint's decoder."""
    folder = tmp_path_factory.mktemp("tiny")
    return load(bundled(build_decoder(golden_checkpoint(folder)), folder / "bundle"))


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("nano-checkpoint") / "nano"
    write_random_checkpoint(folder, size="nano")
    return build_decoder(Checkpoint(folder), max_new=60)


@pytest.fixture(scope="module")
def bundle(network: Any, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return bundled(network, tmp_path_factory.mktemp("nano") / "bundle")


@pytest.fixture(scope="module")
def nano(bundle: Bundle) -> LlamaDecoder:
    return load(bundle)


@pytest.fixture
def codes(network: Any) -> np.ndarray:
    return np.random.default_rng(3).integers(0, network.spec["codebook_size"], (60, 16))


def eager(network: Any, codes: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return network(torch.from_numpy(codes), *network.zero_state())[0].numpy()


@pytest.mark.parametrize("size", [1, 4, 25, None])
def test_any_chunking_equals_the_official_decode(tiny: LlamaDecoder, size: int | None) -> None:
    golden = read_golden()
    samples = run(tiny, golden.codes, chunks(len(golden.codes), size))
    assert samples.shape == (300 * 1920,)
    assert samples.dtype == np.float32
    assert golden.worst_db(samples) >= REQUIRED_DB


@pytest.mark.parametrize("size", [1, 3, 60])
def test_every_sample_equals_the_torch_network(nano: LlamaDecoder, network: Any, codes: np.ndarray, size: int) -> None:
    assert snr(run(nano, codes, chunks(60, size)), eager(network, codes)) >= REQUIRED_DB


def test_half_the_bytes_are_weights_rounded_not_computed_with(network: Any, codes: np.ndarray, tmp_path: Path) -> None:
    """At any chunk size the same distance from float32: 45 dB with these weights, more with trained ones."""
    decoder = load(bundled(network, tmp_path / "f16", "f16"))
    found = [snr(run(decoder, codes, chunks(60, size)), eager(network, codes)) for size in (1, 4, 25)]
    assert min(found) >= 40
    assert max(found) - min(found) < 0.1


def test_it_is_a_decoder_adapter(tiny: LlamaDecoder) -> None:
    assert isinstance(tiny, DecoderAdapter)
    assert (tiny.sample_rate, tiny.samples_per_frame, tiny.left_context_frames) == (24_000, 1920, 0)


def test_a_reference_is_the_past_without_its_samples(nano: LlamaDecoder, codes: np.ndarray) -> None:
    primed = run(nano, codes[25:], chunks(35, 7), nano.start(codes[:25]))
    whole = run(nano, codes, [slice(None)])
    assert snr(primed, whole[25 * 1920 :]) >= REQUIRED_DB
    assert snr(run(nano, codes[25:], [slice(None)]), whole[25 * 1920 :]) < 60, "the reference must matter"
    assert np.array_equal(run(nano, codes, [slice(9)], nano.start(codes[:0])), run(nano, codes, [slice(9)]))


def test_equal_chunks_give_equal_bits(nano: LlamaDecoder, bundle: Bundle, codes: np.ndarray) -> None:
    pieces = chunks(60, None)
    first = run(nano, codes, pieces)
    assert np.array_equal(first, run(nano, codes, pieces))
    assert np.array_equal(first, run(load(bundle), codes, pieces))


def test_interleaved_states_do_not_mix(nano: LlamaDecoder, codes: np.ndarray) -> None:
    other = codes[::-1].copy()
    alone = [run(nano, rows, chunks(60, 4)) for rows in (codes, other)]
    states, parts = [nano.start(), nano.start()], ([], [])
    for piece in chunks(60, 4):
        for state, rows, out in zip(states, (codes, other), parts, strict=True):
            out.append(nano.decode(state, rows[piece]))
    assert np.array_equal(np.concatenate(parts[0]), alone[0])
    assert np.array_equal(np.concatenate(parts[1]), alone[1])


def test_shared_memory_shows_nothing_of_the_past(nano: LlamaDecoder, codes: np.ndarray) -> None:
    wanted = run(nano, codes[:9], chunks(9, 4))
    for given in nano._net.inputs.values():
        given.array.fill(np.nan)
    assert np.array_equal(run(nano, codes[:9], chunks(9, 4)), wanted)


def test_a_clone_goes_on_by_itself(nano: LlamaDecoder, codes: np.ndarray) -> None:
    primed = nano.start(codes[:20])
    twin = primed.clone()
    wanted = run(nano, codes[20:], chunks(40, 8), nano.start(codes[:20]))
    nano.decode(primed, codes[:3])
    assert np.array_equal(run(nano, codes[20:], chunks(40, 8), twin), wanted)
    assert (primed.frames, twin.frames) == (23, 60)


def test_results_belong_to_the_caller(nano: LlamaDecoder, codes: np.ndarray) -> None:
    state = nano.start()
    kept = nano.decode(state, codes[:3])
    copy = kept.copy()
    nano.decode(state, codes[5:8])
    assert np.array_equal(kept, copy)


def test_a_long_utterance_ends_as_well_as_it_began(nano: LlamaDecoder) -> None:
    codes = np.random.default_rng(4).integers(0, 256, (400, 16))
    samples = run(nano, codes, chunks(400, 25))
    # two layers of window 72, the kernel in front and the convolutions behind reach back less than 170 frames
    fresh = run(nano, codes[-200:], chunks(200, 25))
    assert snr(samples[-30 * 1920 :], fresh[-30 * 1920 :]) >= REQUIRED_DB


def test_two_threads_compute_what_one_does(bundle: Bundle, nano: LlamaDecoder, codes: np.ndarray) -> None:
    two = RUNTIME.load_decoder(bundle, bundle.artifact("decoder"), StageOptions(threads=2))
    assert snr(run(two, codes, chunks(8, 4)), run(nano, codes, chunks(8, 4))) >= REQUIRED_DB


def test_an_interruption_is_an_error(nano: LlamaDecoder, codes: np.ndarray) -> None:
    wanted, over = run(nano, codes, [slice(None)]), threading.Event()

    def stop() -> None:
        while not over.wait(0.001):
            nano.interrupt()

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        with pytest.raises(SynthesisError, match="interrupted"):
            [nano.decode(nano.start(), codes) for _ in range(200)]
    finally:
        over.set()
        thread.join()
    assert np.array_equal(run(nano, codes, [slice(None)]), wanted)


@pytest.mark.parametrize("value", [-1, 256, 2150])
def test_ids_outside_the_codebook_are_named(nano: LlamaDecoder, codes: np.ndarray, value: int) -> None:
    state = nano.start(codes[:10])
    wrong = codes[10:20].copy()
    wrong[7, 3] = value
    with pytest.raises(SynthesisError, match=rf"Code {value} in frame 7, codebook 3 .* 0\.\.255"):
        nano.decode(state, wrong)
    assert state.frames == 10
    assert np.array_equal(nano.decode(state, codes[10:20]), nano.decode(nano.start(codes[:10]), codes[10:20]))


@pytest.mark.parametrize("shape", [(16,), (4, 15), (4, 17), (0, 16), (1, 4, 16)])
def test_codes_of_another_shape_are_refused(nano: LlamaDecoder, shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match=r"\(frames >= 1, 16\)"):
        nano.decode(nano.start(), np.zeros(shape, np.int64))


def test_codes_that_are_no_integers_are_refused(nano: LlamaDecoder) -> None:
    with pytest.raises(UsageError, match="integer codes"):
        nano.decode(nano.start(), np.zeros((2, 16), np.float32))


def test_samples_that_are_no_numbers_name_the_frame(nano: LlamaDecoder, codes: np.ndarray) -> None:
    state = nano.start(codes[:10])
    state.tails["dac.post_conv"][...] = np.nan
    with pytest.raises(SynthesisError, match="from frame 10 "):
        nano.decode(state, codes[10:20])


def test_files_and_sizes_that_do_not_fit_are_refused(bundle: Bundle, tmp_path: Path) -> None:
    for change, match in (
        ({"groups": None}, "'groups' in the manifest is None"),
        ({"ratios": "x"}, "meta in the manifest is incomplete"),
        ({"rates": [8, 5, 4]}, "contradict each other"),
        ({"units": [[0, 1, 7]] * 4}, "contradict each other"),
        ({"latent": 40}, r"another model: a\.gen\.wav\.pre_conv\.weight is \(32, 32, 3\), not \(40, 32, 3\)"),
        ({"layers": 3}, r"lacks the tensors a\.gen\.wav\.tfm\.blk\.2\."),
        ({"codebook_size": 999}, r"another model: a\.gen\.wav\.quant\.first\.codebook\.weight"),
        ({"theta": -1.0}, "'theta' in the manifest is -1.0"),
    ):
        with pytest.raises(BundleError, match=match):
            load(bundle, **change)
    with pytest.raises(BundleError, match="cannot be read"):
        load(replace(bundle, root=tmp_path))


def test_codebooks_with_columns_of_their_own(network: Any, nano: LlamaDecoder, codes: np.ndarray, tmp_path: Path) -> None:
    """Product-quantised codebooks, as the embedded voice has: each column is used by one book."""
    factors = network.factors["codebooks"]
    try:
        split = [(books, matrix.copy()) for books, matrix in factors[1:]]
        network.factors["codebooks"] = [factors[0], *split]
        found = run(load(bundled(network, tmp_path / "own")), codes, [slice(None)])
    finally:
        network.factors["codebooks"] = factors
    assert snr(found, run(nano, codes, [slice(None)])) >= REQUIRED_DB


def test_a_file_of_llama_cpps_own_converter_loads(nano: LlamaDecoder, network: Any, codes: np.ndarray, tmp_path: Path) -> None:
    """That converter leaves scales, gains and all three residual units as tensors of their own, and packs matrices."""
    ours = GgufFile(bundled(network, tmp_path / "ours").path("llama_cpp/decoder.gguf"))
    values = {name: ours.floats(name).copy() for name in ours.tensors}
    for name, scale in list(values.items()):
        if name.endswith(tuple(SCALES)):
            scale[:] = 0.5
            ending = next(e for e in SCALES if name.endswith(e))
            for part in SCALES[ending]:
                values[name.removesuffix(ending) + part] *= 2
    path = tmp_path / "llama_cpp" / "decoder.gguf"
    path.parent.mkdir()
    weights = [Weight(name, v.shape, "fp32", lambda v=v: v) for name, v in values.items()]
    write(path, "clip", {}, weights)
    meta = json.loads(json.dumps(decoder_meta(network)))
    artifact = Artifact("decoder", "llama_cpp", "fp32", ("llama_cpp/decoder.gguf",), meta)
    theirs = LlamaDecoder(replace(open_bundle(tmp_path / "ours"), root=tmp_path), artifact, ONE)
    assert snr(run(theirs, codes, [slice(None)]), run(nano, codes, [slice(None)])) >= REQUIRED_DB
