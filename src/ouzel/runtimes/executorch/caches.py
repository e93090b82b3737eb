"""Key/value buffers of a transformer, float32 (1, positions, kv_heads, head_dim): what `llama::update_cache` writes in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ouzel.errors import SynthesisError

KEYS = ("layers", "kv_heads", "head_dim")
"""What of a network's spec gives the buffers their shape."""


def cache_inputs(meta: Mapping[str, int], positions: int) -> dict[str, tuple[int, ...]]:
    """Name and shape of each buffer, key and value of each layer in turn."""
    shape = (1, positions, meta["kv_heads"], meta["head_dim"])
    return {f"{kind}.{i}": shape for i in range(meta["layers"]) for kind in ("key", "value")}


def empty_caches(torch: Any, meta: Mapping[str, int], positions: int) -> list[Any]:
    """The buffers of a fresh state, as tensors. SynthesisError when there is no room for them."""
    try:
        # numpy's zeros are pages not yet touched; torch's would be written, and so be in memory, at once.
        return [torch.from_numpy(np.zeros(shape, np.float32)) for shape in cache_inputs(meta, positions).values()]
    except MemoryError:
        raise SynthesisError(f"There is no memory for the keys and values of {positions} rows; close other utterances.") from None
