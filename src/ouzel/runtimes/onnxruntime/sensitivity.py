"""How few bits each weight of a codec decoder bears: found by trying each on random codes, so that no recordings are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.runtimes.onnxruntime.storage import Steps, choices

AIM_DB = 47.0
"""Signal-to-noise ratio that all rounding together leaves. At the same bits one weight may make 10^8 times another's noise."""
_FRAMES = 12
_EXACT = 16


def fewest_bits(decoder: Any, progress: Callable[[float], None] = lambda fraction: None) -> dict[str, int]:
    """{weight: 4 or 8} such that AIM_DB is reached with few bytes in all; weights that it lacks need 16 bits.

    decoder: as for `export_decoder`. Costs one or two decodes of 12 frames for each large weight; takes noises as independent.
    """
    large = {
        name: weight
        for name, weight in decoder.named_parameters()
        if weight.is_floating_point() and weight.dim() > 1 and choices(weight.shape) and name not in decoder.factors
    }
    wanted = _decode(decoder)
    allowed = 10 ** (-AIM_DB / 10) * _power(wanted)
    noises: dict[str, dict[int, float]] = {}
    for name, weight in large.items():
        noises[name] = tried = {}
        for bits in choices(weight.shape):
            tried[bits] = _noise_at(decoder, weight, bits, wanted)
            # A bit less is at least four times the noise: fewer bits have no chance then.
            if tried[bits] * 4 > allowed:
                break
        progress(len(noises) / len(large))
    return allot(noises, {name: weight.numel() for name, weight in large.items()}, allowed)


def allot(noises: Mapping[str, Mapping[int, float]], sizes: Mapping[str, int], allowed: float) -> dict[str, int]:
    """Bits by weight, 16 left out: the fewest for each, then more for those that it rids of most noise for its bytes.

    noises: power by bits; 16 bits make none. sizes: number of values. allowed: power of all noises together.
    """
    levels = {name: {**tried, _EXACT: 0.0} for name, tried in noises.items()}
    bits = {name: min(tried) for name, tried in levels.items()}
    while sum(levels[name][n] for name, n in bits.items()) > allowed:
        gains = {
            (name, more): (levels[name][n] - levels[name][more]) / (sizes[name] * (more - n))
            for name, n in bits.items()
            for more in levels[name]
            if more > n
        }
        if not gains:
            break
        name, more = max(gains, key=lambda key: gains[key])
        bits[name] = more
    return {name: n for name, n in bits.items() if n != _EXACT}


def _noise_at(decoder: Any, weight: Any, bits: int, wanted: NDArray[np.float32]) -> float:
    """Power of the difference that rounding this weight makes."""
    import torch

    exact = weight.data
    values = exact.numpy()
    try:
        weight.data = torch.from_numpy(Steps.of(values, bits).expanded(values.shape))
        return _power(_decode(decoder) - wanted)
    finally:
        weight.data = exact


def _decode(decoder: Any) -> NDArray[np.float32]:
    """Samples of the same random codes, decoded in the longest pieces that the network takes."""
    import torch

    spec, samples = decoder.spec, []
    codes = np.random.default_rng(0).integers(0, spec["codebook_size"], (_FRAMES, spec["groups"]))
    state = decoder.zero_state()
    with torch.inference_mode():
        for start in range(0, _FRAMES, spec["max_new"]):
            out, *state = decoder(torch.from_numpy(codes[start : start + spec["max_new"]]), *state)
            samples.append(out.numpy())
    return np.concatenate(samples)


def _power(samples: NDArray[np.float32]) -> float:
    return float(np.sum(samples.astype(np.float64) ** 2))
