"""The codec decoder as a GGUF file, with the tensor names of llama.cpp's own converter.

What the network has multiplied into its neighbours beforehand (layer scales, most of Snake's factors) stays there, and the
tensors that llama.cpp has for it hold ones: the function is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ouzel.runtimes.llama_cpp.gguf_write import F16, FP32, Floats, Weight, write

DECODERS = (FP32, F16)
"""How the decoder can be stored, the default first; it computes in float32 whatever this says."""
WAV = "a.gen.wav."


def export_decoder(
    decoder: Any, path: Path, storage: str = FP32, progress: Callable[[float], None] = lambda fraction: None
) -> None:
    """Write the network `decoder`. storage: one of DECODERS, of matrices and convolutions; vectors are float32."""
    values = {
        "general.name": "codec decoder",
        "general.file_type": 1 if storage == F16 else 0,
        "clip.has_gen_audio_encoder": True,
        "clip.gen.audio.projector_type": "qwen3tts_gen",
    }
    write(path, "clip", values, list(_tensors(decoder, storage)), progress)


def decoder_meta(decoder: Any) -> dict[str, Any]:
    """What an artifact's meta says of the decoder: all sizes that its file must have."""
    spec, transformer, waveform = decoder.spec, decoder.transformer, decoder.waveform
    layer = transformer.layers[0]
    shape = layer.shape
    # The network keeps its rotation as a table: the angle of the second pair at position 1 is theta ** (-2 / head_dim).
    angle = math.atan2(float(transformer.sin[1, 1]), float(transformer.cos[1, 1]))
    return {
        **{key: spec[key] for key in ("groups", "codebook_size", "samples_per_frame", "sample_rate")},
        "window": shape.window,
        "codebook_dim": decoder.codebooks.shape[1],
        "latent": transformer.enter.weight.shape[0],
        "hidden_size": transformer.enter.weight.shape[1],
        "layers": len(transformer.layers),
        "heads": shape.heads,
        "kv_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "inner_size": layer.down.weight.shape[0],
        "epsilon": float(layer.before_attention.eps),
        "theta": round(angle ** (-shape.head_dim / 2), 2),
        "ratios": [upsample.stride for upsample in decoder.upsample],
        "rates": [block.upsample.stride for block in waveform.blocks],
        "channels": waveform.enter.weight.shape[0],
        "units": [list(places) for places in waveform.units],
    }


def _tensors(decoder: Any, storage: str) -> Iterator[Weight]:
    def large(name: str, values: Floats) -> Weight:
        return Weight(f"{WAV}{name}", values.shape, storage, lambda: values)

    def small(name: str, tensor: Any) -> Weight:
        values = _array(tensor)
        return Weight(f"{WAV}{name}", values.shape, FP32, lambda: values)

    def linear(name: str, layer: Any) -> Iterator[Weight]:
        yield large(f"{name}.weight", _array(layer.weight).T)
        if layer.bias is not None:
            yield small(f"{name}.bias", layer.bias)

    def convolution(name: str, layer: Any) -> Iterator[Weight]:
        yield large(f"{name}.weight", _array(layer.weight)[:, :, 0])
        yield small(f"{name}.bias", layer.bias)

    def snake(name: str, layer: Any) -> Iterator[Weight]:
        gain = _array(layer.gain).reshape(-1)
        yield small(f"{name}.alpha", np.ones_like(gain) if layer.scale is None else _array(layer.scale).reshape(-1))
        yield small(f"{name}.beta", gain)

    for branch, (books, projection) in _quantizer(decoder).items():
        yield large(f"quant.{branch}.codebook.weight", books)
        yield large(f"quant.{branch}.out_proj.weight", projection)
    pre = decoder.pre
    taps = _array(pre.product.weight).T.reshape(-1, pre.taps, decoder.codebooks.shape[1])
    yield large("pre_conv.weight", taps.transpose(0, 2, 1))
    yield small("pre_conv.bias", pre.product.bias)
    yield from linear("tfm.in_proj", decoder.transformer.enter)
    for i, layer in enumerate(decoder.transformer.layers):
        yield from _layer(f"tfm.blk.{i}.", layer, large, small)
    yield small("tfm.output_norm.weight", decoder.transformer.norm.weight)
    yield from linear("tfm.out_proj", decoder.transformer.leave)
    for i, (upsample, convnext) in enumerate(zip(decoder.upsample, decoder.convnext, strict=True)):
        at, stride = f"up.blk.{i}.", upsample.stride
        product = _array(upsample.product.weight)
        yield large(f"{at}conv.weight", product.reshape(len(product), stride, -1).transpose(0, 2, 1))
        yield small(f"{at}conv.bias", upsample.product.bias[: product.shape[1] // stride])
        yield from convolution(f"{at}dwconv", convnext.depthwise)
        yield small(f"{at}norm.weight", convnext.norm.weight)
        yield small(f"{at}norm.bias", convnext.norm.bias)
        yield from linear(f"{at}pw1", convnext.expand)
        yield from linear(f"{at}pw2", convnext.contract)
        yield small(f"{at}gamma", np.ones(len(convnext.norm.bias), np.float32))
    waveform = decoder.waveform
    yield from convolution("dac.entry", waveform.enter)
    for i, block in enumerate(waveform.blocks):
        at, stride = f"dac.blk.{i}.", block.upsample.stride
        yield from snake(f"{at}snake", block.snake)
        phases = _array(block.upsample.conv.weight)[:, :, 0]  # (out * stride, in, 2), the newest column last
        back = phases.reshape(-1, stride, phases.shape[1], 2)[..., ::-1].transpose(2, 0, 3, 1)
        yield large(f"{at}conv.weight", back.reshape(phases.shape[1], -1, 2 * stride))
        yield small(f"{at}conv.bias", block.upsample.conv.bias[::stride])
        for j, unit in zip(waveform.units[i], block.units, strict=True):
            yield from snake(f"{at}res.{j}.act1", unit.first)
            yield from convolution(f"{at}res.{j}.conv1", unit.conv)
            yield from snake(f"{at}res.{j}.act2", unit.second)
            yield from convolution(f"{at}res.{j}.conv2", unit.point)
    yield from snake("dac.post_snake", waveform.snake)
    yield from convolution("dac.post_conv", waveform.leave)


def _layer(at: str, layer: Any, large: Any, small: Any) -> Iterator[Weight]:
    shape = layer.shape
    project = _array(layer.project.weight).T
    ends = np.cumsum([shape.heads, shape.kv_heads]) * shape.head_dim
    query, key, value = np.split(project, ends)
    yield small(f"{at}ln1.weight", layer.before_attention.weight)
    yield large(f"{at}attn_q.weight", query * np.float32(shape.head_dim**0.5))  # the scale of the scores is not part of it there
    yield large(f"{at}attn_k.weight", key)
    yield large(f"{at}attn_v.weight", value)
    yield large(f"{at}attn_out.weight", _array(layer.output.weight).T)
    gate, up = np.split(_array(layer.gate_up.weight).T, 2)
    yield small(f"{at}ln2.weight", layer.before_mlp.weight)
    yield large(f"{at}ffn_gate.weight", gate)
    yield large(f"{at}ffn_up.weight", up)
    yield large(f"{at}ffn_down.weight", _array(layer.down.weight).T)
    for scale in ("ls1", "ls2"):
        yield small(f"{at}{scale}.weight", np.ones(query.shape[1], np.float32))


def _quantizer(decoder: Any) -> dict[str, tuple[Floats, Floats]]:
    """Branch -> (codebooks, projection (codebook_dim, width)): "first" (codes, width), "rest" (groups - 1, codes, width)."""
    (entries, projection), *rest = decoder.factors["codebooks"]
    found = {"first": (entries, projection.T)}
    if all(matrix is rest[0][1] for _, matrix in rest):
        found["rest"] = (np.stack([books for books, _ in rest]), rest[0][1].T)
        return found
    # Codebooks that use columns of their own get them side by side.
    ends = np.cumsum([books.shape[1] for books, _ in rest])
    joined = np.zeros((len(rest), len(entries), int(ends[-1])), np.float32)
    for i, (books, _) in enumerate(rest):
        joined[i, :, ends[i] - books.shape[1] : ends[i]] = books
    found["rest"] = (joined, np.concatenate([matrix for _, matrix in rest]).T)
    return found


def _array(tensor: Any) -> Floats:
    values: Floats = tensor if isinstance(tensor, np.ndarray) else tensor.detach().numpy()
    return np.ascontiguousarray(values, np.float32)
