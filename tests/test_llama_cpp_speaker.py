"""The speaker encoder on ggml: the official vectors, what it refuses, and the bundle that has it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bundles import converted
from conftest import cached_checkpoint
from ouzel.adapters import SpeakerAdapter
from ouzel.api.reference import References
from ouzel.audio.mel import log_mel
from ouzel.bundle import Bundle, BundleWriter, open_bundle
from ouzel.errors import BundleError, UsageError
from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.family import Qwen3TtsFamily
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.llama_cpp import RUNTIME
from ouzel.runtimes.llama_cpp.gguf_file import GgufFile
from ouzel.runtimes.llama_cpp.gguf_write import Weight, write
from test_reference_parity import GOLDEN, NAMES, samples

torch.set_num_threads(1)
ONE = StageOptions(threads=1)


@pytest.fixture(scope="module")
def network() -> Any:
    checkpoint = Checkpoint(cached_checkpoint("tiny", "base", dtype="f32", encoders=True))
    return Qwen3TtsFamily().encoders(checkpoint).speaker_encoder


@pytest.fixture(scope="module")
def bundle(network: Any, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    out = tmp_path_factory.mktemp("speaker") / "bundle"
    with BundleWriter(out) as writer:
        writer.describe(family="qwen3_tts", tokenizer="hf_bpe", task="Base")
        RUNTIME.convert_encoder("speaker_encoder", network, writer, lambda label, done: None)
    return open_bundle(out)


def load(bundle: Bundle, **meta: Any) -> SpeakerAdapter:
    artifact = bundle.artifact("speaker_encoder")
    return RUNTIME.load_encoder(bundle, replace(artifact, meta={**artifact.meta, **meta}), ONE)


@pytest.fixture(scope="module")
def speaker(bundle: Bundle) -> SpeakerAdapter:
    return load(bundle)


def distance(got: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))


def eager(network: Any, heard: np.ndarray) -> np.ndarray:
    with torch.inference_mode():
        return network(torch.from_numpy(heard)).numpy()


@pytest.mark.parametrize("name", NAMES)
def test_the_vector_is_the_official_one(speaker: SpeakerAdapter, network: Any, name: str) -> None:
    vector = speaker.embed(samples(name))
    assert vector.dtype == np.float32
    with np.load(GOLDEN) as golden:
        official, others = golden[f"{name}.vector"], [golden[f"{other}.vector"] for other in NAMES if other != name]
    assert vector.shape == official.shape
    assert distance(vector, official) < 1e-5
    assert distance(vector, eager(network, samples(name))) < 1e-5
    assert min(distance(vector, other) for other in others) > 1e-2
    print(name, distance(vector, official), distance(vector, eager(network, samples(name))))
