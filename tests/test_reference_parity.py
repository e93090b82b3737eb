"""What ouzel makes of a recording against the official qwen-tts package.

tests/golden/reference/official.npz comes from tools/oracle/regenerate.sh.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch

from conftest import cached_checkpoint
from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.family import Qwen3TtsFamily
from ouzel.runtimes.onnxruntime.encoders import PIECE, OrtCodecEncoder, OrtSpeakerEncoder
from ouzel.runtimes.onnxruntime.export_encoders import export_codec_encoder, export_speaker_encoder
from test_parity_greedy import CASES

GOLDEN = Path(__file__).parent / "golden" / "reference" / "official.npz"
NAMES = tuple(CASES.RECORDINGS)


@pytest.fixture(scope="module")
def golden():
    with np.load(GOLDEN) as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def checkpoint() -> Path:
    return cached_checkpoint("tiny", "base", dtype="f32", encoders=True)


@pytest.fixture(scope="module")
def encoders(checkpoint):
    torch.set_num_threads(1)
    return Qwen3TtsFamily().encoders(Checkpoint(checkpoint))


@pytest.fixture(scope="module")
def speaker(encoders, tmp_path_factory) -> OrtSpeakerEncoder:
    folder = tmp_path_factory.mktemp("speaker")
    graph, _ = export_speaker_encoder(encoders.speaker_encoder, folder)
    return OrtSpeakerEncoder(folder / graph, encoders.speaker_encoder.spec, threads=1)


@pytest.fixture(scope="module")
def codec(encoders, tmp_path_factory) -> OrtCodecEncoder:
    folder = tmp_path_factory.mktemp("codec")
    first, second, *_ = export_codec_encoder(encoders.codec_encoder, folder)
    return OrtCodecEncoder([folder / first, folder / second], encoders.codec_encoder.spec, threads=1)


def samples(name: str) -> np.ndarray:
    return CASES.recording(name).astype(np.float32) / 32768


def test_the_goldens_are_of_this_checkpoint(golden, checkpoint):
    for key, file in (("model", "model.safetensors"), ("codec", "speech_tokenizer/model.safetensors")):
        assert hashlib.sha256((checkpoint / file).read_bytes()).hexdigest() == str(golden[key])
    assert "qwen-tts 0.1.1" in str(golden["versions"])


@pytest.mark.parametrize("name", NAMES)
def test_the_speaker_vector_is_the_official_one(golden, speaker, name):
    vector, official = speaker.embed(samples(name)), golden[f"{name}.vector"]
    assert vector.shape == official.shape == (128,)
    assert np.linalg.norm(vector - official) < 1e-5 * np.linalg.norm(official)
    others = [golden[f"{other}.vector"] for other in NAMES if other != name]
    # Another recording is told apart, so the comparison above means something.
    assert min(np.linalg.norm(vector - other) for other in others) > 1e-2 * np.linalg.norm(official)


@pytest.mark.parametrize("name", NAMES)
def test_reference_codes_are_the_official_ones(golden, codec, name):
    codes, official = codec.encode(samples(name)), golden[f"{name}.codes"]
    assert codes.dtype == np.int64
    assert len(codes) == -(-len(samples(name)) // 1920)  # contract 4.5
    assert np.array_equal(codes, official)


def test_pieces_are_as_good_as_the_whole(codec, encoders):
    """The convolutions take a recording in pieces; here in one, by torch."""
    whole = samples("long")
    assert len(whole) > 5 * PIECE * encoders.codec_encoder.spec["hop"]
    with torch.inference_mode():
        rows = encoders.codec_encoder.features(torch.from_numpy(whole))
        codes = encoders.codec_encoder.codes(rows).numpy()
    assert np.array_equal(codec.encode(whole), codes)
