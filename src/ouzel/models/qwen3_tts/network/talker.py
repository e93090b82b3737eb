"""The talker: rows in, codebook-0 logits and the hidden vector that feeds the code predictor out (contract 5.1, 5.2)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ouzel.models.qwen3_tts.config import TalkerConfig
from ouzel.models.qwen3_tts.network.layers import Linear, Stack, Weights, empty_caches

DEFAULT_POSITIONS = 4096  # the server's max_model_len (contract 1.3), prompt included


class Talker(nn.Module):
    """One graph for prefill and step: append rows to the caches, read the last one.

    weights: `Checkpoint.talker()`.
    """

    def __init__(self, config: TalkerConfig, weights: Weights, positions: int = DEFAULT_POSITIONS) -> None:
        super().__init__()
        self.config = config
        positions = min(positions, config.max_position_embeddings)
        self.stack = Stack(config, weights, positions)
        self.head = Linear(weights["codec_head.weight"])
        self.spec: dict[str, Any] = {
            "hidden_size": config.hidden_size,
            "vocab_size": int(self.head.weight.shape[1]),
            "layers": config.num_hidden_layers,
            "kv_heads": config.num_key_value_heads,
            "head_dim": config.head_dim,
            "max_positions": positions,
        }

    def forward(self, rows: Tensor, length: Tensor, *caches: Tensor) -> tuple[Tensor, ...]:
        """rows (1, n, hidden) float32; length int32 (1,), rows in the caches after this call; caches as of `caches`.

        Returns hidden (1, hidden) of the last row after the final norm, logits (1, vocab), then the caches, written in place.
        """
        hidden, caches = self.stack(rows, length, caches)
        return (hidden, self.head(hidden), *caches)

    def caches(self, capacity: int) -> tuple[Tensor, ...]:
        return empty_caches(self.config, capacity)

    def example(self) -> tuple[Tensor, ...]:
        """Arguments to trace with: a prefill of 3 rows into 8 positions."""
        return (torch.zeros(1, 3, self.config.hidden_size), torch.tensor([3], dtype=torch.int32), *self.caches(8))
