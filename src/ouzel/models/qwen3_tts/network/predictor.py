"""The code predictor: codebooks 1.. of one frame, one position a sub-step over a cache of groups + 1 rows (contract 5.3)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ouzel.models.qwen3_tts.config import PredictorConfig
from ouzel.models.qwen3_tts.network.layers import Linear, Stack, Weights, empty_caches


class Predictor(nn.Module):
    """Sub-step q = 1..groups-1 appends a row and reads codebook q through head q - 1.

    The first call of a frame takes two rows (talker hidden, codebook-0 embedding), each later one the embedding of the
    code just chosen, all in talker width; the input projection is part of the network.

    weights: `Checkpoint.predictor()`; its codec embeddings are not used, rows come from the bundle's tables.
    """

    def __init__(self, config: PredictorConfig, weights: Weights) -> None:
        super().__init__()
        self.config = config
        self.groups = config.num_code_groups
        self.positions = self.groups + 1
        self.stack = Stack(config, weights, self.positions)
        self.heads = nn.ModuleList(Linear(weights[f"lm_head.{q}.weight"]) for q in range(self.groups - 1))
        name = "small_to_mtp_projection"
        self.projection = Linear(weights[f"{name}.weight"], weights.get(f"{name}.bias")) if f"{name}.weight" in weights else None
        width = config.hidden_size if self.projection is None else int(self.projection.weight.shape[0])
        self.spec: dict[str, Any] = {
            "input_size": width,
            "vocab_size": int(self.heads[0].weight.shape[1]),
            "groups": self.groups,
            "layers": config.num_hidden_layers,
            "kv_heads": config.num_key_value_heads,
            "head_dim": config.head_dim,
            "positions": self.positions,
        }

    def body(self, rows: Tensor, length: Tensor, caches: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """rows (1, n, input size), length int32 (1,) after this call; the last row's normed hidden (1, hidden) and the caches."""
        hidden, out = self.stack(rows if self.projection is None else self.projection(rows), length, caches)
        return hidden, out

    def forward(self, rows: Tensor, length: Tensor, *caches: Tensor) -> tuple[Tensor, ...]:
        """As `body`, then every head: logits of codebook 1, 2, .. each (1, vocab), then the caches, written in place.

        A runtime asks for the one head it needs; only that one is computed.
        """
        hidden, out = self.body(rows, length, caches)
        return (*(head(hidden) for head in self.heads), *out)

    def caches(self) -> tuple[Tensor, ...]:
        return empty_caches(self.config, self.positions)

    def example(self) -> tuple[Tensor, ...]:
        """Arguments to trace with: the first sub-step of a frame."""
        return (torch.zeros(1, 2, self.spec["input_size"]), torch.tensor([2], dtype=torch.int32), *self.caches())
