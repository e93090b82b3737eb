"""What the llama.cpp tests share: bundles of its artifacts alone."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from ar_case import predictor, talker
from ouzel.bundle import Bundle, BundleWriter, open_bundle
from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.runtimes.llama_cpp.export import export_predictor, export_talker, predictor_meta, talker_meta
from ouzel.runtimes.llama_cpp.gguf_file import GgufFile
from ouzel.runtimes.llama_cpp.gguf_write import Weight, write


def write_bundle(out: Path, tables: tuple[Any, Any], weights: str, *, talker: Any = None, predictor: Any = None) -> Bundle:
    """A bundle of the given networks without front end and decoder."""
    with BundleWriter(out) as writer:
        writer.describe(family="qwen3_tts", tokenizer="hf_bpe", task="CustomVoice")
        writer.array("tables/codec.npy", tables[0])
        writer.array("tables/residual.npy", tables[1])
        if talker is not None:
            export_talker(talker, writer.path("llama_cpp/talker.gguf"), weights)
            writer.add_artifact("talker", "llama_cpp", weights, ["llama_cpp/talker.gguf"], talker_meta(talker))
        if predictor is not None:
            export_predictor(predictor, writer.path("llama_cpp/predictor.gguf"), weights)
            writer.add_artifact("predictor", "llama_cpp", weights, ["llama_cpp/predictor.gguf"], predictor_meta(predictor))
    return open_bundle(out)


def nano_bundle(out: Path, checkpoint: Checkpoint, weights: str) -> Bundle:
    """Talker (of ar_case.POSITIONS rows) and predictor of the checkpoint."""
    tables = (checkpoint.codec_embedding(), checkpoint.residual_embedding())
    return write_bundle(out, tables, weights, talker=talker(checkpoint), predictor=predictor(checkpoint))


def unpacked(bundle: Bundle, out: Path) -> Bundle:
    """The bundle's artifacts again with every weight as the float32 that it stands for, in folder `out`."""
    shutil.copytree(bundle.root, out)
    for artifact in bundle.manifest.artifacts:
        file = GgufFile(bundle.path(artifact.files[0]))
        weights = [Weight(t.name, t.shape, "fp32", partial(_floats, file, t.name)) for t in file.tensors.values()]
        values = {key: value for key, value in file.values.items() if key != "general.architecture"}
        write(out / artifact.files[0], file.values["general.architecture"], values, weights)
    return replace(bundle, root=out)


def _floats(file: GgufFile, name: str) -> np.ndarray:
    info = file.tensors[name]
    data = file.array(info).reshape(*info.shape[:-1], -1)
    kind = gguf.GGMLQuantizationType(info.kind)
    data = data.view({0: np.float32, 1: np.float16}.get(info.kind, np.uint8))
    return gguf.quants.dequantize(data, kind).reshape(info.shape)


def noise(got: np.ndarray, wanted: np.ndarray) -> float:
    """The difference's standard deviation over that of `wanted`."""
    return float(np.std(got - wanted) / np.std(wanted))
