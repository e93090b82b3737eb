"""The embedding tables of a bundle: text rows after the projection MLP, codebook-0 rows, residual rows (contract 4.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import BundleError
from .config import ModelConfig

if TYPE_CHECKING:
    from ouzel.bundle import Bundle, BundleWriter

    from .checkpoint import Checkpoint

Rows = NDArray[np.float32]
TEXT, CODEC, RESIDUAL = "tables/text.npy", "tables/codec.npy", "tables/residual.npy"
BLOCK = 8192  # text rows projected at once


@dataclass(frozen=True, slots=True)
class Tables:
    """text (text vocabulary, H) float16 or float32; codec E0 (V, H) float32; residual Eq (G-1, Vp, H) float32."""

    text: NDArray[Any]
    codec: Rows
    residual: Rows

    def text_rows(self, ids: Sequence[int]) -> Rows:
        """P(ids), float32 (n, H); n may be 0."""
        found = np.asarray(ids, dtype=np.int64)
        try:
            return np.asarray(self.text[found], dtype=np.float32)
        except IndexError:
            raise BundleError(
                f"The tokenizer gives the id {found.max()}, but {TEXT} has {len(self.text)} rows; they do not belong together: "
                "convert the bundle again."
            ) from None

    def codec_rows(self, ids: Sequence[int]) -> Rows:
        """E0(ids), float32 (n, H)."""
        return np.asarray(self.codec[np.asarray(ids, dtype=np.int64)], dtype=np.float32)

    def frame_rows(self, codes: NDArray[np.int64]) -> Rows:
        """Talker input of whole frames: codes (R, G) -> E0(c0) + sum of Eq(cq), float32 (R, H)."""
        rows = np.array(self.codec[codes[:, 0]], dtype=np.float32)
        for q in range(self.residual.shape[0]):
            rows += self.residual[q, codes[:, q + 1]]
        return rows


def read_tables(bundle: Bundle, config: ModelConfig) -> Tables:
    """The tables of an open bundle, memory-mapped; BundleError when their shapes do not fit its config.json."""
    talker = config.talker
    width, residual = talker.hidden_size, (talker.num_code_groups - 1, talker.predictor.vocab_size, talker.hidden_size)
    expected = {TEXT: (talker.text_vocab_size, width), CODEC: (talker.vocab_size, width), RESIDUAL: residual}
    arrays = {rel: bundle.array(rel) for rel in expected}
    for rel, shape in expected.items():
        if arrays[rel].shape != shape:
            raise BundleError(f"{rel} has shape {arrays[rel].shape}, config.json says {shape}; convert the bundle again.")
    return Tables(arrays[TEXT], arrays[CODEC], arrays[RESIDUAL])


def write_tables(
    checkpoint: Checkpoint, writer: BundleWriter, dtype: type[np.float16 | np.float32], tick: Callable[[float], None]
) -> None:
    """Write all three tables; the text rows as `dtype`, projected in float32 a block at a time. tick: fraction done."""
    talker = checkpoint.config.talker
    writer.array(CODEC, checkpoint.codec_embedding())
    writer.array(RESIDUAL, checkpoint.residual_embedding())
    shape = (talker.text_vocab_size, talker.hidden_size)
    text = np.lib.format.open_memmap(writer.path(TEXT), mode="w+", dtype=dtype, shape=shape)
    first, first_bias, second, second_bias = checkpoint.text_projection()
    for start in range(0, shape[0], BLOCK):
        stop = min(start + BLOCK, shape[0])
        hidden = checkpoint.text_rows(start, stop) @ first.T + first_bias
        text[start:stop] = _silu(hidden) @ second.T + second_bias
        tick(stop / shape[0])
    text.flush()


def _silu(x: Rows) -> Rows:
    with np.errstate(over="ignore"):  # exp of a large negative number's opposite: the quotient is a correct 0
        return np.asarray(x / (1 + np.exp(-x)), dtype=np.float32)
