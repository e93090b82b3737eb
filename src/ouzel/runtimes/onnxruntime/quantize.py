"""Block-wise symmetric weights in the layout of ONNX Runtime's MatMulNBits operator.

Each run of `block` input weights of one output column shares a scale: the one of largest magnitude maps to -2^(bits-1) exactly,
the rest to the nearest step. Stored values are unsigned with the zero point in the middle, which is the operator's default.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import choose

_HEADS = ("head.", "heads.")
_ROWS = 512  # output columns quantised at once: bounds the float temporaries to a few MB


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """How linear weights are stored: bits 0 = float32 as they are.

    head_bits: of the matrices that logits come from, where rounding goes straight into the distribution: in 8 bits they are a few
    hundredths of the work, and int4's divergence from float32 is an eighth of what it is with 4 (docs/weights.md).
    """

    bits: int
    head_bits: int = 8
    block: int = 64
    # MatMulNBits level 4: activations as int8 inside the kernel, the only level with integer dot products on CPUs.
    accuracy_level: int = 4

    def bits_of(self, name: str) -> int:
        """Of the parameter `name` of a talker or predictor network."""
        return self.head_bits if name.startswith(_HEADS) else self.bits


FORMATS = {"fp32": WeightFormat(0), "int8": WeightFormat(8), "int4": WeightFormat(4)}


def weight_format(weights: str) -> WeightFormat:
    """The format named "fp32", "int8" or "int4"; UsageError for anything else."""
    if weights not in FORMATS:
        raise choose("weights", weights, FORMATS)
    return FORMATS[weights]


def quantize(weight: NDArray[np.float32], bits: int, block: int) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """weight (out, in) -> (uint8 (out, blocks, block * bits / 8), scales float32 (out * blocks,)), low nibble first for 4 bits.

    A last block that `in` does not fill is padded with zeros.
    """
    if bits not in (4, 8):
        raise choose("bits", bits, (4, 8))
    out, size = weight.shape
    blocks = -(-size // block)
    packed = np.empty((out, blocks, block * bits // 8), np.uint8)
    scales = np.empty((out, blocks), np.float32)
    for start in range(0, out, _ROWS):
        part = np.zeros((min(_ROWS, out - start), blocks * block), np.float32)
        part[:, :size] = weight[start : start + _ROWS]
        codes, scales[start : start + _ROWS] = blockwise(part.reshape(-1, blocks, block), bits)
        packed[start : start + _ROWS] = codes if bits == 8 else codes[..., 0::2] | (codes[..., 1::2] << 4)
    return packed, scales.reshape(-1)


def blockwise(values: NDArray[np.float32], bits: int) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """values (..., block) -> (uint8 codes of the same shape, scales float32 (...)); the zero point is 2^(bits-1)."""
    half = 1 << (bits - 1)
    low, high = values.min(-1), values.max(-1)
    scale = np.where(np.abs(high) > np.abs(low), high, low) / np.float32(-half)
    inverse = np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale != 0)
    # Rounded after the shift, halves up, as the reference quantiser does; np.rint would take halves to even.
    codes = values * inverse[..., None] + np.float32(half)
    codes += np.float32(0.5)
    np.floor(codes, out=codes)
    return np.clip(codes, 0, 2 * half - 1, out=codes).astype(np.uint8), scale


def dequantize(packed: NDArray[np.uint8], scales: NDArray[np.float32], bits: int) -> NDArray[np.float32]:
    """The weights that the operator will use, float32 (out, blocks * block)."""
    out, blocks, _ = packed.shape
    codes = packed if bits == 8 else np.stack((packed & 15, packed >> 4), -1).reshape(out, blocks, -1)
    steps = codes.astype(np.float32) - np.float32(1 << (bits - 1))
    result: NDArray[np.float32] = (steps * scales.reshape(out, blocks, 1)).reshape(out, -1)
    return result
