"""A table whose rows are sums of few parts, kept as its parts: a phone track's rows, of three phones and a pitch level each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]
EXACT = 1e-5  # of the largest value: what rounding to float32 leaves


@dataclass(frozen=True, slots=True)
class RowSums:
    """parts (p, width) float32; index (n, k) integers below p, ValueError for others. Row i is the sum of parts[index[i]]."""

    parts: Rows
    index: NDArray[Any]

    def __post_init__(self) -> None:
        if self.index.size and not 0 <= int(self.index.min()) <= int(self.index.max()) < len(self.parts):
            raise ValueError(f"indices outside the {len(self.parts)} parts")

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.index), self.parts.shape[1]

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, ids: NDArray[np.int64]) -> Rows:
        """Rows (m, width); IndexError beyond the table."""
        return np.asarray(self.parts[self.index[ids]].sum(1), np.float32)

    @classmethod
    def of(cls, rows: Rows, index: NDArray[Any]) -> RowSums | None:
        """The parts whose sums `rows` (n, width) are; None when they are none (least squares leaves more than rounding)."""
        count = int(index.max()) + 1
        used = np.zeros((count, count))
        total = np.zeros((count, rows.shape[1]))
        for column in index.T:
            np.add.at(total, column, rows)
            for other in index.T:
                np.add.at(used, (column, other), 1.0)
        found = cls((np.linalg.pinv(used, hermitian=True) @ total).astype(np.float32), index)
        worst = max(
            float(np.abs(found[np.arange(at, min(at + 4096, len(rows)))] - rows[at : at + 4096]).max())
            for at in range(0, len(rows), 4096)
        )
        return found if worst <= EXACT * float(np.abs(rows).max()) else None
