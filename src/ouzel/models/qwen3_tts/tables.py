"""The embedding tables of a bundle: text rows, codebook-0 rows, residual rows (contract 4.2).

The text rows are stored in the narrower of two forms: after the projection MLP, width H, when the checkpoint's own rows are at
least as wide (the published models: 2048 to 1024 or 2048); else as the checkpoint has them, width Ht, beside the MLP, which then
runs on the rows that are asked for. Rows that are sums of few parts are stored as those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...errors import BundleError
from .config import ModelConfig
from .row_sums import RowSums

if TYPE_CHECKING:
    from ouzel.bundle import Bundle, BundleWriter

    from .checkpoint import Checkpoint

Rows = NDArray[np.float32]
TEXT, CODEC, RESIDUAL = "tables/text.npy", "tables/codec.npy", "tables/residual.npy"
PARTS, SUMS = "tables/text_parts.npy", "tables/text_sums.npy"
INNER, OUTER = "tables/text_inner.npy", "tables/text_outer.npy"
BLOCK = 8192  # text rows projected at once
# Runtimes that need a codec table as float32 copy a float16 one. Below this many bytes (of float32) the copy is cheaper than
# the file; above, a float32 file is better: it is mapped, and only rows that are used are read.
MAPPED = 64 << 20


@dataclass(frozen=True, slots=True)
class Projection:
    """P(x) = W2 silu(W1 x + b1) + b2, contract 4.2: W1 (Ht, Ht), b1 (Ht,), W2 (H, Ht), b2 (H,), float32.

    On disk each layer is one table, its bias the last column.
    """

    first: Rows
    first_bias: Rows
    second: Rows
    second_bias: Rows

    def __call__(self, rows: Rows) -> Rows:
        """float32 (n, Ht) -> (n, H)."""
        hidden = rows @ self.first.T + self.first_bias
        return np.asarray(_silu(hidden) @ self.second.T + self.second_bias, dtype=np.float32)

    @classmethod
    def stored(cls, inner: NDArray[Any], outer: NDArray[Any]) -> Projection:
        """From its tables: inner (Ht, Ht + 1), outer (H, Ht + 1)."""
        parts = (part for table in (inner, outer) for part in (table[:, :-1], table[:, -1]))
        return cls(*(np.array(part, dtype=np.float32, order="C") for part in parts))


@dataclass(frozen=True, slots=True)
class Tables:
    """text (text vocabulary, H), or (text vocabulary, Ht) with a projection; codec E0 (V, H); residual Eq (G-1, Vp, H).

    Arrays are float16 or float32.
    """

    text: NDArray[Any] | RowSums
    codec: NDArray[Any]
    residual: NDArray[Any]
    projection: Projection | None = None

    def text_rows(self, ids: Sequence[int]) -> Rows:
        """P(ids), float32 (n, H); n may be 0."""
        found = np.asarray(ids, dtype=np.int64)
        try:
            rows = np.asarray(self.text[found], dtype=np.float32)
        except IndexError:
            where = SUMS if isinstance(self.text, RowSums) else TEXT
            raise BundleError(
                f"The tokenizer gives the id {found.max()}, but {where} has {len(self.text)} rows; they do not belong together: "
                "convert the bundle again."
            ) from None
        return rows if self.projection is None else self.projection(rows)

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
    talker, files = config.talker, bundle.manifest.files
    width, narrow = talker.hidden_size, talker.text_hidden_size
    projected, summed = INNER not in files, SUMS in files
    expected: dict[str, tuple[int | None, ...]] = {
        CODEC: (talker.vocab_size, width),
        RESIDUAL: (talker.num_code_groups - 1, talker.predictor.vocab_size, width),
    }
    shape = (talker.text_vocab_size, width if projected else narrow)
    expected |= {SUMS: (shape[0], None), PARTS: (None, shape[1])} if summed else {TEXT: shape}
    if not projected:
        expected |= {INNER: (narrow, narrow + 1), OUTER: (width, narrow + 1)}
    arrays = {rel: bundle.indices(rel) if rel == SUMS else bundle.array(rel) for rel in expected}
    for rel, wanted in expected.items():
        found = arrays[rel].shape
        if len(found) != len(wanted) or any(w not in (None, f) for w, f in zip(wanted, found, strict=True)):
            said = tuple("any" if w is None else w for w in wanted)
            raise BundleError(f"{rel} has shape {found}, config.json says {said}; convert the bundle again.")
    projection = None if projected else Projection.stored(arrays[INNER], arrays[OUTER])
    try:
        text = RowSums(np.asarray(arrays[PARTS], np.float32), arrays[SUMS]) if summed else arrays[TEXT]
    except ValueError as e:
        raise BundleError(f"{SUMS} is damaged ({e}); convert the bundle again.") from e
    return Tables(text, arrays[CODEC], arrays[RESIDUAL], projection)


def write_tables(
    checkpoint: Checkpoint,
    writer: BundleWriter,
    dtype: type[np.float16 | np.float32],
    tick: Callable[[float], None],
    summands: NDArray[Any] | None = None,
) -> None:
    """Write all tables. dtype: of the text rows, and of the codec tables where they are small. tick: fraction done.

    summands (text vocabulary, k): which parts each text row may be the sum of.
    """
    talker = checkpoint.config.talker
    for rel, values in ((CODEC, checkpoint.codec_embedding()), (RESIDUAL, checkpoint.residual_embedding())):
        writer.array(rel, values.astype(dtype, copy=False) if values.nbytes <= MAPPED else values)
    first, first_bias, second, second_bias = checkpoint.text_projection()
    projection = Projection(first, first_bias, second, second_bias)
    project = talker.text_hidden_size >= talker.hidden_size
    if not project:
        writer.array(INNER, np.column_stack([first, first_bias]))
        writer.array(OUTER, np.column_stack([second, second_bias]))
    if summands is not None and not project and len(summands) == talker.text_vocab_size:
        sums = RowSums.of(checkpoint.text_rows(0, talker.text_vocab_size), summands)
        if sums is not None and len(sums.parts) <= np.iinfo(np.uint16).max:
            writer.array(PARTS, sums.parts)
            writer.array(SUMS, sums.index.astype(np.uint16))
            tick(1.0)
            return
    shape = (talker.text_vocab_size, talker.hidden_size if project else talker.text_hidden_size)
    text = np.lib.format.open_memmap(writer.path(TEXT), mode="w+", dtype=dtype, shape=shape)
    for start in range(0, shape[0], BLOCK):
        stop = min(start + BLOCK, shape[0])
        rows = checkpoint.text_rows(start, stop)
        text[start:stop] = projection(rows) if project else rows
        tick(stop / shape[0])
    text.flush()


def _silu(x: Rows) -> Rows:
    with np.errstate(over="ignore"):  # exp of a large negative number's opposite: the quotient is a correct 0
        return np.asarray(x / (1 + np.exp(-x)), dtype=np.float32)
