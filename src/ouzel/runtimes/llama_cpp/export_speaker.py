"""The speaker encoder as a GGUF file, with the tensor names of llama.cpp's own converter; float32."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ouzel.runtimes.llama_cpp.gguf_write import FP32, Floats, Weight, write


def export_speaker(network: Any, path: Path, progress: Callable[[float], None] = lambda fraction: None) -> None:
    """Write the network `speaker_encoder`."""
    values = {
        "general.name": "speaker encoder",
        "general.file_type": 0,
        "clip.has_audio_encoder": True,
        "clip.audio.projector_type": "qwen3tts_spkenc",
    }
    write(path, "clip", values, list(_tensors(network)), progress)


def speaker_meta(network: Any) -> dict[str, Any]:
    """What an artifact's meta says of the encoder: the sizes that its file must have, and the dilations."""
    first, blocks, gather = network.first, network.blocks, network.gather
    parts = [block.parts[0] if len(block.parts) else block.into for block in blocks]
    return {
        **network.spec,
        "bands": first.weight.shape[1],
        "channels": first.weight.shape[0],
        "groups": blocks[0].groups,
        "squeezed": blocks[0].squeeze.weight.shape[0],
        "attention": network.pool.attention.weight.shape[1],
        "convolutions": [[layer.weight.shape[-1], layer.dilation] for layer in (first, *parts, gather)],
    }


def _tensors(network: Any) -> Iterator[Weight]:
    def tensor(name: str, values: Floats) -> Weight:
        return Weight(name, values.shape, FP32, lambda: values)

    def convolution(name: str, weight: Any, bias: Any) -> Iterator[Weight]:
        yield tensor(f"{name}.weight", _array(weight))
        yield tensor(f"{name}.bias", _array(bias))

    def layer(name: str, found: Any) -> Iterator[Weight]:
        return convolution(name, found.weight, found.bias)

    yield from layer("a.conv1d.0", network.first)
    for i, block in enumerate(network.blocks, start=1):
        at = f"a.blk.{i}."
        yield from layer(f"{at}conv_pw1", block.into)
        for j, part in enumerate(block.parts):
            yield from layer(f"{at}res2.{j}", part)
        yield from layer(f"{at}conv_pw2", block.out)
        yield from layer(f"{at}se_conv1", block.squeeze)
        yield from layer(f"{at}se_conv2", block.excite)
    yield from layer("a.conv_out", network.gather)
    pool = network.pool
    seen = np.concatenate([_array(part) for part in (pool.frame, pool.mean, pool.deviation)], axis=1)
    yield from convolution("a.asp_tdnn", seen, pool.bias)
    yield from layer("a.asp_attn", pool.attention)
    yield from layer("mm.a.fc", network.head)


def _array(tensor: Any) -> Floats:
    values: Floats = tensor if isinstance(tensor, np.ndarray) else tensor.detach().numpy()
    return np.ascontiguousarray(values, np.float32)
