"""What the talkers of all runtimes share: their sizes, and what rows a state takes."""

from __future__ import annotations

from collections.abc import Mapping

from ouzel.adapters import Rows
from ouzel.errors import SynthesisError


class SizedTalker:
    """The part of TalkerCore that its dimensions decide. meta: hidden_size, vocab_size and max_positions among others."""

    meta: Mapping[str, int]

    @property
    def hidden_size(self) -> int:
        return self.meta["hidden_size"]

    @property
    def vocab_size(self) -> int:
        return self.meta["vocab_size"]

    @property
    def max_positions(self) -> int:
        return self.meta["max_positions"]

    def _length_with(self, length: int, rows: Rows) -> int:
        """Rows of a state of `length` rows once `rows` (n >= 1, hidden) are appended. SynthesisError when they cannot be."""
        count = len(rows)
        if rows.shape != (count, self.hidden_size) or not count:
            raise SynthesisError(f"The talker takes rows of shape (n >= 1, {self.hidden_size}), not {rows.shape}.")
        if length + count > self.max_positions:
            raise SynthesisError(f"The talker's context of {self.max_positions} rows is full; {length + count} are needed.")
        return length + count
