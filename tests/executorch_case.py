"""What the tests of the runtime executorch share. They need its package: `make test-executorch` runs them in its venv."""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("executorch", reason="needs ouzel[executorch]: make test-executorch")

import ar_case
from bundles import ROOT, source_key
from conftest import cached_checkpoint
from ouzel.bundle import Bundle, BundleWriter, open_bundle
from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.network.decoder import build_decoder
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.executorch.backends import chosen_backend
from ouzel.runtimes.executorch.export import export_decoder, export_predictor, export_talker

ONE = StageOptions(threads=1)
WEIGHTS = {"talker": "fp32", "predictor": "fp32", "decoder": "fp32"}


@cache
def checkpoint() -> Checkpoint:
    return Checkpoint(cached_checkpoint("nano", "custom_voice", dtype="f32"))


@cache
def network(stage: str):
    build = {"talker": ar_case.talker, "predictor": ar_case.predictor, "decoder": build_decoder}
    return build[stage](checkpoint())


@cache
def bundle(stage: str, weights: str = "fp32") -> Bundle:
    """One stage of the nano checkpoint, lowered for XNNPACK; kept as long as the sources stay the same. Copy it to change it."""
    final = ROOT / "build" / "test-bundles" / f"{source_key()}-executorch-{stage}-{weights}"
    if not final.is_dir():
        work = final.with_name(f"{final.name}.{os.getpid()}")
        work.mkdir(parents=True)
        try:
            write(work / "bundle", stage, weights)
            if not final.is_dir():
                os.rename(work, final)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return open_bundle(final / "bundle")


def write(out: Path, stage: str, weights: str) -> None:
    with BundleWriter(out) as writer:
        writer.describe(family="qwen3_tts", tokenizer="hf_bpe", task="CustomVoice")
        writer.array("tables/codec.npy", checkpoint().codec_embedding())
        writer.array("tables/residual.npy", checkpoint().residual_embedding())
        path = writer.path(f"executorch/{stage}.pte")
        target = chosen_backend("xnnpack")
        if stage == "decoder":
            meta = export_decoder(network(stage), path, target, lambda part: None)
        else:
            export = {"talker": export_talker, "predictor": export_predictor}[stage]
            meta = export(network(stage), path, weights, target, lambda part: None)
        writer.add_artifact(stage, "executorch", weights, [f"executorch/{path.name}"], meta)
