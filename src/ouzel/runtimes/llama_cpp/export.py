"""Talker and code predictor as GGUF files, with the tensor names of llama.cpp's own converter.

The networks' fused projections are taken apart again, and the query norm loses the 1/sqrt(head size) that they fold into it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ouzel.errors import UsageError
from ouzel.runtimes.llama_cpp.gguf_write import F16, FP32, Q4_0, Q8_0, Floats, Weight, fitting, write

Progress = Callable[[float], None]

ARCHITECTURE = "qwen3tts"
IDS = 3072
"""Codebook-0 ids of llama.cpp's talker, whatever its file says; a smaller talker's head is filled up with zeros."""
_TALKER_LAYER = {"norm": "attn_norm", "out": "attn_output", "mlp_norm": "ffn_norm"}
_PREDICTOR_LAYER = {"norm": "ln1", "out": "attn_out", "mlp_norm": "ln2"}
_FILE_TYPES = {FP32: 0, F16: 1, Q4_0: 2, Q8_0: 7}  # enum llama_ftype


def export_talker(talker: Any, path: Path, weights: str, progress: Progress = lambda fraction: None) -> None:
    """Write the talker; it loads with llama_model_load_from_file. UsageError when llama.cpp cannot run its shape."""
    found = talker.spec["vocab_size"]
    if found > IDS:
        raise UsageError(f"llama.cpp runs talkers of at most {IDS} codebook-0 ids; this one has {found}.")
    write(path, ARCHITECTURE, talker_values(talker, weights), talker_tensors(talker, weights), progress)


def talker_values(talker: Any, weights: str) -> dict[str, Any]:
    """The metadata of a talker's file."""
    spec, config, at = talker.spec, talker.config, ARCHITECTURE
    half = spec["head_dim"] // 2
    third = half // 3
    return {
        "general.name": "talker",
        "general.file_type": _FILE_TYPES[weights],
        f"{at}.block_count": spec["layers"],
        f"{at}.context_length": spec["max_positions"],
        f"{at}.embedding_length": spec["hidden_size"],
        f"{at}.feed_forward_length": talker.stack.layers[0].inner,
        f"{at}.attention.head_count": config.num_attention_heads,
        f"{at}.attention.head_count_kv": spec["kv_heads"],
        f"{at}.attention.key_length": spec["head_dim"],
        f"{at}.attention.value_length": spec["head_dim"],
        f"{at}.attention.layer_norm_rms_epsilon": float(config.rms_norm_eps),
        f"{at}.rope.freq_base": float(config.rope_theta),
        # How the rotary dimensions are shared out does not matter: a row's positions are equal in all of them.
        f"{at}.rope.dimension_sections": [half - 2 * third, third, third, 0],
        f"{at}.vocab_size": IDS,
        "tokenizer.ggml.model": "no_vocab",  # texts never reach it
    }


def talker_tensors(talker: Any, weights: str) -> Iterator[Weight]:
    """The tensors of a talker's file."""
    table = (IDS, talker.spec["hidden_size"])
    # Never read: rows come in as embeddings, of the bundle's tables. llama.cpp wants the tensor to be there.
    yield Weight("token_embd.weight", table, fitting(Q4_0, table), lambda: np.zeros(table, np.float32))
    yield from _stack(talker.stack, "blk.", _TALKER_LAYER, weights)
    yield _vector("output_norm.weight", talker.stack.norm.weight)
    head = talker.head.weight.t()
    yield Weight(
        "output.weight", table, _kind(weights, table, small=True), lambda: np.pad(_array(head), ((0, IDS - len(head)), (0, 0)))
    )


def export_predictor(predictor: Any, path: Path, weights: str, progress: Progress = lambda fraction: None) -> None:
    """Write the code predictor, named as in the file that holds it for llama.cpp's multimodal library."""
    spec, config, at = predictor.spec, predictor.config, "a.gen.code."
    values: dict[str, Any] = {
        "general.name": "code predictor",
        "general.file_type": _FILE_TYPES[weights],
        "clip.has_gen_audio_encoder": True,
        "clip.gen.audio.projector_type": "qwen3tts_gen",
    }
    tensors = list(_stack(predictor.stack, f"{at}blk.", _PREDICTOR_LAYER, weights))
    if weights == F16:
        # What goes into it can exceed what float16 holds (llama.cpp's converter does the same).
        tensors = [Weight(t.name, t.shape, FP32, t.read) if t.name.endswith(".ffn_down.weight") else t for t in tensors]
    heads = predictor.heads
    shape = (len(heads), spec["vocab_size"], config.hidden_size)
    tensors += [
        _vector(f"{at}output_norm.weight", predictor.stack.norm.weight),
        Weight(
            f"{at}head.weight", shape, _kind(weights, shape, small=True), lambda: np.stack([_array(h.weight.t()) for h in heads])
        ),
    ]
    projection = predictor.projection
    if projection is not None:
        tensors.append(_matrix(f"{at}proj_in.weight", projection.weight.t(), weights, small=True))
        if projection.bias is not None:
            tensors.append(_vector(f"{at}proj_in.bias", projection.bias))
    write(path, "clip", values, tensors, progress)


def talker_meta(talker: Any) -> dict[str, Any]:
    """What an artifact's meta says of the talker: the sizes that its file must have."""
    return {**talker.spec, "heads": talker.config.num_attention_heads, "inner_size": talker.stack.layers[0].inner}


def predictor_meta(predictor: Any) -> dict[str, Any]:
    """As `talker_meta`, with what the file does not say: the norms' epsilon and the base of the rotation."""
    config = predictor.config
    return {
        **predictor.spec,
        "hidden_size": config.hidden_size,
        "heads": config.num_attention_heads,
        "inner_size": predictor.stack.layers[0].inner,
        "epsilon": float(config.rms_norm_eps),
        "theta": float(config.rope_theta),
    }


def _stack(stack: Any, prefix: str, names: dict[str, str], weights: str) -> Iterator[Weight]:
    for i, layer in enumerate(stack.layers):
        at, inner = f"{prefix}{i}.", layer.inner
        yield _vector(f"{at}{names['norm']}.weight", layer.input_norm.weight)
        start = 0
        for letter, size in zip("qkv", layer.sizes, strict=True):
            yield _matrix(f"{at}attn_{letter}.weight", layer.qkv.weight[:, start : start + size].t(), weights)
            start += size
        yield _vector(f"{at}attn_q_norm.weight", layer.q_norm.weight * layer.head_dim**0.5)
        yield _vector(f"{at}attn_k_norm.weight", layer.k_norm.weight)
        yield _matrix(f"{at}{names['out']}.weight", layer.o.weight.t(), weights)
        yield _vector(f"{at}{names['mlp_norm']}.weight", layer.mlp_norm.weight)
        yield _matrix(f"{at}ffn_gate.weight", layer.gate_up.weight[:, :inner].t(), weights)
        yield _matrix(f"{at}ffn_up.weight", layer.gate_up.weight[:, inner:].t(), weights)
        yield _matrix(f"{at}ffn_down.weight", layer.down.weight.t(), weights)


def _matrix(name: str, tensor: Any, weights: str, *, small: bool = False) -> Weight:
    shape = tuple(int(n) for n in tensor.shape)
    return Weight(name, shape, _kind(weights, shape, small=small), lambda: _array(tensor))


def _vector(name: str, tensor: Any) -> Weight:
    return Weight(name, tuple(int(n) for n in tensor.shape), FP32, lambda: _array(tensor))


def _kind(weights: str, shape: tuple[int, ...], *, small: bool) -> str:
    """Heads and projections are small and directly heard: with 4-bit layers they keep 8."""
    return fitting(Q8_0 if small and weights == Q4_0 else weights, shape)


def _array(tensor: Any) -> Floats:
    array: Floats = tensor.detach().contiguous().numpy()
    return array
