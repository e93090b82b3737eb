"""What the MNN tests share: bundles of nano networks for MNN, made once a session."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ar_case
from ouzel.bundle import Bundle, BundleWriter, open_bundle
from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.network.decoder import build_decoder
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.mnn import RUNTIME

ONE = StageOptions(threads=1)


def networks(checkpoint: Checkpoint) -> SimpleNamespace:
    return SimpleNamespace(
        talker=ar_case.talker(checkpoint), predictor=ar_case.predictor(checkpoint), decoder=build_decoder(checkpoint, max_new=16)
    )


def write_bundle(out: Path, made: Any, tables: tuple[np.ndarray, np.ndarray], weights: str) -> Bundle:
    """A bundle of the three networks without front end, converted by the runtime itself."""
    with BundleWriter(out) as writer:
        writer.describe(family="qwen3_tts", tokenizer="hf_bpe", task="CustomVoice")
        writer.array("tables/codec.npy", tables[0])
        writer.array("tables/residual.npy", tables[1])
        RUNTIME.convert(made, writer, weights, "fp32", lambda label, fraction: None)
    return open_bundle(out)


@pytest.fixture(scope="session")
def mnn_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return ar_case.nano_checkpoint(tmp_path_factory.mktemp("mnn") / "checkpoint")


@pytest.fixture(scope="session")
def mnn_bundle(mnn_checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Bundle]:
    """mnn_bundle("fp32" | "int8" | "int4"): of the nano checkpoint, made when first asked for. Read only."""
    folder = tmp_path_factory.mktemp("mnn-bundles")
    tables = mnn_checkpoint.codec_embedding(), mnn_checkpoint.residual_embedding()

    @cache
    def made(weights: str) -> Bundle:
        return write_bundle(folder / weights, networks(mnn_checkpoint), tables, weights)

    return made
