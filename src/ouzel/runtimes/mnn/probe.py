"""Whether a loaded network is the one that was converted: one fixed row, and what torch made of it.

MNN reads zeros or stale bytes of a damaged file of weights without a word, and its converter does not report a failed write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import BundleError

_VALUES = 32  # of each output; as many as tell a network from another
_ALIKE = {"fp32": 0.999}
_NEARLY = 0.5  # correlation that quantised weights leave at least; another network's is about 0


def row(width: int) -> NDArray[np.float32]:
    """float32 (1, width)."""
    return np.sin(np.arange(1, width + 1, dtype=np.float32))[np.newaxis]


def recorded(network: Any, width: int, caches: Sequence[Any], names: Sequence[str]) -> dict[str, list[float]]:
    """What the torch network makes of `row`: some values of each of its first outputs, which get `names`."""
    import torch

    with torch.inference_mode():
        outputs = network(torch.from_numpy(row(width))[None], torch.tensor([1], dtype=torch.int32), *caches)
    return {name: [float(x) for x in _some(value[0].numpy())] for name, value in zip(names, outputs, strict=False)}


def check(stage: str, weights: str, meta: Mapping[str, Any], found: Mapping[str, NDArray[np.float32]]) -> None:
    """BundleError when an output is not near what meta["probe"] says; a bundle without it passes."""
    wanted = meta.get("probe", {})
    for name, values in found.items():
        if name in wanted:
            alike = _correlation(_some(values), np.array(wanted[name], np.float32))
            if alike < _ALIKE.get(weights, _NEARLY):
                raise BundleError(
                    f"The {stage} in this bundle is not what was converted ({name} correlate {alike:.2f} with torch's); "
                    "convert or download the bundle again."
                )


def _some(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return values[:: max(1, len(values) // _VALUES)][:_VALUES]


def _correlation(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """-1..1; 0 where one of them is constant."""
    a, b = a - a.mean(), b - b.mean()
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if size else 0.0
