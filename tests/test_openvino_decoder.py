"""The codec decoder on OpenVINO: parity at any chunking, states that do not mix, the precision, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from importlib import metadata
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from cli_run import environment
from decoder_case import REQUIRED_DB, chunks, golden_checkpoint, read_golden, snr
from ouzel.adapters import DecoderAdapter
from ouzel.bundle import BundleWriter, open_bundle
from ouzel.errors import BundleError, MissingExtraError, SynthesisError, UsageError
from ouzel.models.qwen3_tts.network.decoder import build_decoder
from ouzel.runtimes.base import Runtime, StageOptions
from ouzel.runtimes.openvino import RUNTIME
from ouzel.runtimes.openvino.library import core
from ouzel.runtimes.openvino.snake import polynomial_sines
from test_ort_decoder import run

torch.set_num_threads(1)
ONE = StageOptions(threads=1)


@pytest.fixture(scope="module")
def golden():
    return read_golden()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("openvino")
    network = build_decoder(golden_checkpoint(folder), max_new=16)
    with BundleWriter(folder / "bundle") as writer:
        writer.describe(family="qwen3_tts", tokenizer="hf_bpe", task="CustomVoice")
        RUNTIME.convert(SimpleNamespace(decoder=network), writer, "", "fp32", lambda label, fraction: None)
    return open_bundle(folder / "bundle")


@pytest.fixture(scope="module")
def decoder(bundle):
    return RUNTIME.load_decoder(bundle, bundle.artifact("decoder"), ONE)


@pytest.fixture
def codes(decoder):
    return np.random.default_rng(3).integers(0, decoder.meta.codebook_size, (60, 16))


@pytest.mark.parametrize("size", [1, 4, 25])
def test_any_chunking_equals_the_official_decode(decoder, golden, size):
    assert golden.worst_db(run(decoder, golden.codes, chunks(len(golden.codes), size))) >= REQUIRED_DB


def test_the_protocols_hold(decoder):
    assert isinstance(RUNTIME, Runtime)
    assert isinstance(decoder, DecoderAdapter)
    assert (decoder.sample_rate, decoder.samples_per_frame, decoder.left_context_frames) == (24_000, 1920, 0)


def test_every_sine_becomes_a_polynomial_as_good(bundle):
    from openvino import Tensor, opset13

    model = core().read_model(str(bundle.path("openvino/decoder.xml")))
    sines = sum(node.get_type_name() == "Sin" for node in model.get_ops())
    assert polynomial_sines(model) == sines > 10
    assert not any(node.get_type_name() == "Sin" for node in model.get_ops())
    x = opset13.parameter([20_001], np.float32)
    sine = opset13.sin(x)
    from openvino import Model

    alone = Model([opset13.multiply(sine, sine)], [x])
    assert polynomial_sines(alone) == 1
    request = core().compile_model(alone, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    given = np.linspace(-20, 20, 20_001, dtype=np.float32)
    request.set_input_tensor(Tensor(given))
    request.infer()
    assert np.abs(request.get_output_tensor().data - np.sin(given.astype(np.float64)) ** 2).max() < 2e-6


def test_a_sine_that_is_not_squared_stays():
    from openvino import Model, opset13

    x = opset13.parameter([4], np.float32)
    sine = opset13.sin(x)
    assert polynomial_sines(Model([opset13.add(opset13.multiply(sine, sine), sine)], [x])) == 0


def test_the_precision_is_float32_unless_asked(bundle, decoder):
    assert decoder._request.get_compiled_model().get_property("INFERENCE_PRECISION_HINT").to_string() == "f32"


def test_bfloat16_is_used_where_there_is_any_and_refused_elsewhere(bundle, decoder, codes):
    artifact, options = bundle.artifact("decoder"), replace(ONE, precision="bf16")
    if "BF16" not in core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        with pytest.raises(UsageError, match="does not compute in bf16; choose the precision fp32"):
            RUNTIME.load_decoder(bundle, artifact, options)
        return
    half = RUNTIME.load_decoder(bundle, artifact, options)
    assert 15 < snr(run(half, codes, chunks(24, 4)), run(decoder, codes, chunks(24, 4))) < REQUIRED_DB


def test_interleaved_states_do_not_mix(decoder, codes):
    other = codes[::-1].copy()
    alone = [run(decoder, rows, chunks(24, 4)) for rows in (codes, other)]
    states, parts = [decoder.start(), decoder.start()], ([], [])
    for piece in chunks(24, 4):
        for state, rows, out in zip(states, (codes, other), parts, strict=True):
            out.append(decoder.decode(state, rows[piece]))
    assert np.array_equal(np.concatenate(parts[0]), alone[0])
    assert np.array_equal(np.concatenate(parts[1]), alone[1])


def test_a_clone_goes_on_by_itself(decoder, codes):
    primed = decoder.start(codes[:20])
    twin = primed.clone()
    wanted = run(decoder, codes[20:28], chunks(8, 4), decoder.start(codes[:20]))
    decoder.decode(primed, codes[:3])
    assert np.array_equal(run(decoder, codes[20:28], chunks(8, 4), twin), wanted)
    assert (primed.frames, twin.frames) == (23, 28)


def test_results_belong_to_the_caller(decoder, codes):
    state = decoder.start()
    kept = decoder.decode(state, codes[:5])
    copy = kept.copy()
    decoder.decode(state, codes[5:10])
    assert np.array_equal(kept, copy)


def test_wrong_codes_move_nothing(decoder, codes):
    state = decoder.start(codes[:10])
    wrong = codes[10:20].copy()
    wrong[7, 3] = 9999
    with pytest.raises(SynthesisError, match="Code 9999 in frame 7, codebook 3"):
        decoder.decode(state, wrong)
    with pytest.raises(UsageError, match=r"\(frames >= 1, 16\)"):
        decoder.decode(state, codes[:4, :15])
    assert np.array_equal(decoder.decode(state, codes[10:20]), decoder.decode(decoder.start(codes[:10]), codes[10:20]))


def test_a_state_with_no_numbers_is_told(decoder, codes):
    spoilt = decoder.start(codes[:10])
    for array in spoilt.tensors().values():
        array.fill(np.nan)
    with pytest.raises(SynthesisError, match="from frame 10 of the utterance"):
        decoder.decode(spoilt, codes[10:12])


def test_missing_and_other_versions_name_the_pip_command(bundle, monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    for found in (absent, lambda name: "2023.1.0"):
        monkeypatch.setattr(metadata, "version", found)
        with pytest.raises(MissingExtraError, match=r"pip install 'ouzel\[openvino\]'"):
            RUNTIME.load_decoder(bundle, bundle.artifact("decoder"), ONE)
        assert not RUNTIME.status().available


def test_ouzel_finds_the_package_without_importing_it(tmp_path):
    code = "import sys; from ouzel.runtimes import get_runtime as g; print(g('openvino').status(), 'openvino' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(tmp_path), capture_output=True, text=True, check=True, timeout=60
    )
    assert "available=True" in done.stdout
    assert done.stdout.split()[-1] == "False"


def test_placements_that_cannot_be_are_named(bundle):
    artifact = bundle.artifact("decoder")
    with pytest.raises(UsageError, match=r"'gpu'.*Valid choices: cpu\."):
        RUNTIME.load_decoder(bundle, artifact, StageOptions(device="gpu"))
    with pytest.raises(UsageError, match=r"'f16'.*Valid choices: auto, fp32, bf16"):
        RUNTIME.load_decoder(bundle, artifact, StageOptions(precision="f16"))
    with pytest.raises(UsageError, match="from 0"):
        RUNTIME.load_decoder(bundle, artifact, StageOptions(threads=-1))
    for load in (RUNTIME.load_talker, RUNTIME.load_predictor):
        with pytest.raises(UsageError, match="runs the decoder only"):
            load(bundle, artifact, ONE)


def test_files_and_meta_that_do_not_fit_are_refused(bundle, tmp_path):
    artifact = bundle.artifact("decoder")
    meta = {**artifact.meta, "state": artifact.meta["state"][1:]}
    with pytest.raises(BundleError, match=r"other state tensors than the manifest says \(pre\)"):
        RUNTIME.load_decoder(bundle, replace(artifact, meta=meta), ONE)
    broken = replace(bundle, root=tmp_path)
    with pytest.raises(BundleError, match="does not exist"):
        RUNTIME.load_decoder(broken, artifact, ONE)
    (tmp_path / "openvino").mkdir()
    (tmp_path / "openvino" / "decoder.bin").write_bytes(b"")
    for text in (b"not a graph", bundle.path("openvino/decoder.xml").read_bytes()):
        (tmp_path / "openvino" / "decoder.xml").write_bytes(text)
        with pytest.raises(BundleError, match=r"cannot load .*Convert the bundle again"):
            RUNTIME.load_decoder(broken, artifact, ONE)
