"""What the talker and predictor tests share: small checkpoints, bundles of them, and a slow reading of the contract."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from ouzel.bundle import Bundle, BundleWriter, open_bundle
from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.network.predictor import Predictor
from ouzel.models.qwen3_tts.network.talker import Talker
from ouzel.models.qwen3_tts.random_checkpoint import write_random_checkpoint
from ouzel.runtimes.onnxruntime.export import export_predictor, export_talker
from ouzel.runtimes.onnxruntime.quantize import weight_format

GOLDEN = Path(__file__).parent / "golden" / "talker"
POSITIONS = 700  # of the test talkers: small enough to fill, large enough to grow twice


def nano_checkpoint(folder: Path) -> Checkpoint:
    """The checkpoint that the golden codes were made of; fails when its generator changes."""
    write_random_checkpoint(folder, size="nano", kind="custom_voice", seed=0, dtype="f32")
    wanted = json.loads((GOLDEN / "nano.json").read_text())["sha256"]
    found = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert found == wanted, "the random checkpoint has changed: make the golden codes again"
    return Checkpoint(folder)


def talker(checkpoint: Checkpoint) -> Talker:
    return Talker(checkpoint.config.talker, checkpoint.talker(), positions=POSITIONS)


def predictor(checkpoint: Checkpoint) -> Predictor:
    return Predictor(checkpoint.config.talker.predictor, checkpoint.predictor())


def wide_predictor(checkpoint: Checkpoint, width: int) -> tuple[Predictor, dict[str, Any]]:
    """A predictor behind a talker of another width, as in the 1.7B models, with its weights."""
    import torch

    draw = torch.Generator().manual_seed(1)
    weights = checkpoint.predictor()
    hidden = checkpoint.config.talker.predictor.hidden_size
    weights["small_to_mtp_projection.weight"] = torch.randn(hidden, width, generator=draw) * width**-0.5
    weights["small_to_mtp_projection.bias"] = torch.randn(hidden, generator=draw) * 0.1
    return Predictor(checkpoint.config.talker.predictor, weights), weights


def write_bundle(out: Path, talker: Talker, predictor: Predictor, tables: tuple[np.ndarray, np.ndarray], weights: str) -> Bundle:
    """A bundle of the two networks without front end and decoder."""
    format = weight_format(weights)
    with BundleWriter(out) as writer:
        writer.describe(family="qwen3_tts", tokenizer="hf_bpe", task="CustomVoice")
        writer.array("tables/codec.npy", tables[0])
        writer.array("tables/residual.npy", tables[1])
        folder = writer.path("onnxruntime/talker.onnx").parent
        names = export_talker(talker, folder, format, lambda fraction: None)
        writer.add_artifact("talker", "onnxruntime", weights, [f"onnxruntime/{name}" for name in names], talker.spec)
        names = export_predictor(predictor, folder, format, lambda fraction: None)
        writer.add_artifact("predictor", "onnxruntime", weights, [f"onnxruntime/{name}" for name in names], predictor.spec)
    return open_bundle(out)


def nano_bundle(out: Path, checkpoint: Checkpoint, weights: str) -> Bundle:
    tables = (checkpoint.codec_embedding(), checkpoint.residual_embedding())
    return write_bundle(out, talker(checkpoint), predictor(checkpoint), tables, weights)


def slow_transformer(config: Any, weights: dict[str, Any], rows: np.ndarray) -> np.ndarray:
    """All rows (n, hidden) at once, no cache, one head at a time; float64 (n, hidden) after the final norm (contract 5.2)."""
    w = {name: tensor.numpy().astype(np.float64) for name, tensor in weights.items()}
    heads, kv_heads, d = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    x = rows.astype(np.float64)
    n = len(x)
    angles = np.arange(n)[:, None] * config.rope_theta ** (-np.arange(d // 2) / (d // 2))

    def norm(values: np.ndarray, name: str) -> np.ndarray:
        return values / np.sqrt((values**2).mean(-1, keepdims=True) + config.rms_norm_eps) * w[name]

    def turn(values: np.ndarray) -> np.ndarray:
        pairs = (values[:, : d // 2] + 1j * values[:, d // 2 :]) * np.exp(1j * angles)
        return np.concatenate([pairs.real, pairs.imag], -1)

    for i in range(config.num_hidden_layers):
        at = f"layers.{i}."
        qkv = norm(x, at + "input_layernorm.weight") @ w[at + "self_attn.qkv_proj.weight"].T
        pieces = np.split(qkv, heads + 2 * kv_heads, axis=1)
        out = []
        for head in range(heads):
            group = heads + head // (heads // kv_heads)
            q = turn(norm(pieces[head], at + "self_attn.q_norm.weight"))
            k = turn(norm(pieces[group], at + "self_attn.k_norm.weight"))
            scores = np.where(np.tri(n, dtype=bool), q @ k.T / np.sqrt(d), -np.inf)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            out.append(scores / scores.sum(-1, keepdims=True) @ pieces[group + kv_heads])
        x = x + np.concatenate(out, 1) @ w[at + "self_attn.o_proj.weight"].T
        gate, up = np.split(norm(x, at + "post_attention_layernorm.weight") @ w[at + "mlp.gate_up_proj.weight"].T, 2, axis=1)
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[at + "mlp.down_proj.weight"].T
    return norm(x, "norm.weight")
