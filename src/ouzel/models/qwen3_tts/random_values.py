"""Random weights that keep a Qwen3-TTS network well behaved, the same on every machine.

Each tensor has its own Philox stream, keyed by seed and name, and only exactly rounded operations follow it, so a value
depends on nothing but seed, name and position. All values are uniform: `scale` is their standard deviation.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .config import CodecConfig, ModelConfig
from .random_encoders import encoder_scale
from .tensors import Shape

Floats = NDArray[np.float32]
BLOCK = 1 << 24  # values drawn at once: bounds the writer's memory
HEAD_GAIN = 3.0  # standard deviation of the logits; lower makes greedy codes cling to a few ids
WAVEFORM_RMS = 0.1
SHALLOW = 3  # layers whose sum does not yet drown the input row: deeper stacks add less each, or greedy codes settle
UNITS_GAIN = 1.5  # growth over the Snake and three residual units of a waveform block, taken back at its start


@dataclass(frozen=True, slots=True)
class Draw:
    """values = centre + scale * unit uniform; `opposed` negates the second half of that axis.

    Opposed halves let nothing of a common offset through: Snake activations have a positive mean that would otherwise
    grow from layer to layer into a constant that clips the waveform.
    """

    scale: float
    centre: float = 0.0
    opposed: int | None = None


class RandomValues:
    """Draws the tensors of one checkpoint."""

    def __init__(self, model: ModelConfig, codec: CodecConfig, seed: int) -> None:
        self._seed = seed
        self._codes = codec.decoder.codebook_size
        self._end = model.talker.codec_eos_token_id
        self._layers = (model.talker.num_hidden_layers, model.talker.predictor.num_hidden_layers)
        self._residuals = codec.decoder.num_quantizers - codec.decoder.num_semantic_quantizers
        self._last_conv = f"decoder.decoder.{len(codec.decoder.upsample_rates) + 2}.conv.weight"

    def blocks(self, name: str, shape: Shape) -> Iterator[Floats]:
        """The values of tensor `name` in order, float32 arrays over its first axis."""
        draw = self._draw(name, shape)
        key = hashlib.sha256(f"{self._seed}/{name}".encode()).digest()[:16]
        generator = np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))
        if draw.opposed is not None:
            half = list(shape)
            half[draw.opposed] //= 2
            first = _uniform(generator, tuple(half), draw)
            yield np.ascontiguousarray(np.concatenate([first, -first], axis=draw.opposed))
            return
        rows = max(1, BLOCK // max(1, math.prod(shape[1:])))
        for start in range(0, shape[0], rows):
            block = _uniform(generator, (min(rows, shape[0] - start), *shape[1:]), draw)
            if name == "talker.codec_head.weight":
                self._shape_head(block, start)
            yield block

    def _shape_head(self, block: Floats, start: int) -> None:
        """Ids that are no codes never win; the end id wins about once in a thousand greedy frames."""
        ids = np.arange(start, start + len(block))
        block[(ids >= self._codes) & (ids != self._end)] = 0.0
        # its logit needs 3.1 of its own standard deviations to beat the best of `codes` others
        expected_best = math.sqrt(2 * math.log(self._codes)) - 0.5
        block[ids == self._end] *= np.float32(round(expected_best / 3.1, 2))

    def _draw(self, name: str, shape: Shape) -> Draw:
        leaf = name.rsplit(".", 1)[-1]
        fan_in = math.prod(shape[1:])
        if leaf == "initialized":
            return Draw(0.0, centre=1.0)
        if leaf == "cluster_usage":
            return Draw(0.25, centre=1.0)  # not 1, so that forgetting the division shows
        if leaf == "embedding_sum":
            return Draw(1.0 if "rvq_first" in name else 1.0 / math.sqrt(self._residuals))
        if leaf in ("scale", "gamma"):
            return Draw(0.03, centre=0.3)
        if leaf in ("alpha", "beta"):  # logarithms
            return Draw(0.1)
        if leaf == "bias":
            return Draw(0.0 if "decoder.decoder" in name and shape == (1,) else 0.03)
        if re.search(r"self_attn\.[qk]_norm", name):
            return Draw(0.1, centre=1.5)  # peaked attention: history matters, so greedy codes do not settle
        if len(shape) == 1:
            return Draw(0.1, centre=1.0)
        if name.startswith(("speaker_encoder.", "encoder.")):
            return Draw(encoder_scale(name, shape))
        if "codec_embedding" in name:
            return Draw(0.5)
        if "text_embedding" in name:
            return Draw(1.0)
        if "lm_head" in name or "codec_head" in name:
            return Draw(HEAD_GAIN / math.sqrt(fan_in))
        if name.startswith("decoder."):
            return self._draw_codec(name, shape, fan_in)
        gain = 2.0 if "o_proj" in name or "linear_fc2" in name else 1.0
        if "o_proj" in name or "down_proj" in name:
            layers = self._layers["code_predictor" in name]
            gain *= min(1.0, math.sqrt(SHALLOW / layers))
        return Draw(gain / math.sqrt(fan_in))

    def _draw_codec(self, name: str, shape: Shape, fan_in: int) -> Draw:
        if name == self._last_conv:
            return Draw(WAVEFORM_RMS / math.sqrt(fan_in), opposed=1)
        if re.search(r"decoder\.decoder\.\d+\.block\.1\.conv", name):  # transposed: two taps meet in each sample
            return Draw(1 / (UNITS_GAIN * math.sqrt(2 * shape[0])), opposed=0)
        if re.search(r"decoder\.decoder\.\d+\.block\.\d+\.conv[12]\.conv", name):
            return Draw((0.5 if ".conv2." in name else 1.0) / math.sqrt(fan_in), opposed=1)
        if re.search(r"decoder\.upsample\.\d+\.0\.conv", name):  # transposed, stride = kernel: one tap a sample
            return Draw(1 / math.sqrt(shape[0]))
        return Draw(1 / math.sqrt(fan_in))


def _uniform(generator: np.random.Generator, shape: Shape, draw: Draw) -> Floats:
    values = generator.random(shape, dtype=np.float32)
    values -= np.float32(0.5)
    values *= np.float32(draw.scale * math.sqrt(12))
    values += np.float32(draw.centre)
    return values
