"""Words and their phones in one small file: sorted, in blocks that are decompressed when a word of theirs is asked for.

magic, u32 bytes of header | header: zlib of JSON {phones: [...], blocks: [[first word, bytes], ...]} | blocks: zlib each
block: an entry a word: "\\n" WORD, a byte 128 + i for each phone i of the header, 255 after an ordinary word; then "\\n"
"""

from __future__ import annotations

import json
import zlib
from bisect import bisect_right
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path

_MAGIC = b"ouzelex1"
_BLOCK = 256
_FIRST_PHONE = 128
_ORDINARY = 255
_CACHED_BLOCKS = 64  # about 4 kB each


def write_words(path: Path, words: Mapping[str, tuple[str, ...]], ordinary: Collection[str] = ()) -> None:
    """Write words (ASCII) and their phones (at most 127 kinds), and which of them are ordinary ones, not names."""
    phones = sorted({phone for reading in words.values() for phone in reading})
    code = {phone: _FIRST_PHONE + i for i, phone in enumerate(phones)}
    names = sorted(words)
    heads, blocks = [], []
    for start in range(0, len(names), _BLOCK):
        lot = names[start : start + _BLOCK]
        entries = [
            b"\n" + word.encode("ascii") + bytes(code[phone] for phone in words[word]) + bytes([_ORDINARY] * (word in ordinary))
            for word in lot
        ]
        blocks.append(zlib.compress(b"".join(entries) + b"\n", 9))
        heads.append([lot[0], len(blocks[-1])])
    header = zlib.compress(json.dumps({"phones": phones, "blocks": heads}, separators=(",", ":")).encode(), 9)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_MAGIC + len(header).to_bytes(4, "little") + header + b"".join(blocks))


class WordStore:
    """The words of a file of `write_words`. Raises OSError for a file that is missing, ValueError for another kind of file."""

    def __init__(self, path: Path) -> None:
        self._data = path.read_bytes()
        if self._data[: len(_MAGIC)] != _MAGIC:
            raise ValueError(f"{path} is no list of words")
        start = len(_MAGIC) + 4
        end = start + int.from_bytes(self._data[len(_MAGIC) : start], "little")
        header = json.loads(zlib.decompress(self._data[start:end]))
        self._phones: list[str] = header["phones"]
        self._first: list[str] = [first for first, _ in header["blocks"]]
        self._offsets = [end]
        for _, size in header["blocks"]:
            self._offsets.append(self._offsets[-1] + size)
        self._block = lru_cache(_CACHED_BLOCKS)(self._decompress)

    def _decompress(self, index: int) -> bytes:
        return zlib.decompress(self._data[self._offsets[index] : self._offsets[index + 1]])

    def get(self, word: str) -> tuple[str, ...] | None:
        """Phones of `word`, None for a word that is not in the file."""
        return self._read(self._entry(word))

    def ordinary(self, word: str) -> tuple[str, ...] | None:
        """Phones of `word` if it is an ordinary word; None for a name, or a word that is not in the file."""
        entry = self._entry(word)
        return self._read(entry) if entry.endswith(bytes([_ORDINARY])) else None

    def _read(self, entry: bytes) -> tuple[str, ...] | None:
        return tuple(self._phones[code - _FIRST_PHONE] for code in entry if code != _ORDINARY) or None

    def _entry(self, word: str) -> bytes:
        """The bytes after `word` in its block, none for a word that is not there."""
        index = bisect_right(self._first, word) - 1
        if index < 0 or not word.isascii() or "\n" in word:
            return b""
        block = self._block(index)
        key = b"\n" + word.encode()
        at = block.find(key)
        while at >= 0 and block[at + len(key)] < _FIRST_PHONE:  # only the beginning of a longer word
            at = block.find(key, at + 1)
        return block[at + len(key) : block.index(b"\n", at + 1)] if at >= 0 else b""
