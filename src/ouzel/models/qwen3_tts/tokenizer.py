"""Qwen2's byte-level BPE, for text that is spoken.

Checkpoints carry vocab.json, merges.txt and tokenizer_config.json (or a ready tokenizer.json); a bundle carries
tokenizer.json alone, with every added token marked special.

Spoken text never becomes a control token. The official package and the server tokenize the filled-in chat template, so
there "<|im_end|>" inside the text ends it early; here it is spelled out in ordinary tokens like any other characters.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ...errors import BundleError, CheckpointError
from .strict import load_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# How text is cut before the merges apply: contractions, words with one leading sign, single digits, signs, newlines, blanks.
QWEN2_SPLIT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# What the official package ends up with on transformers 4.57.3: it asks for the repair of Mistral's tokenizers, which that
# version applies to every checkpoint whose config.json does not name an older version. Differs in camelCase words, in
# scripts with combining marks and after a slash. Only for exact comparisons with that package.
OFFICIAL_SPLIT = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class TextTokenizer:
    """Text to ids; wraps a `tokenizers.Tokenizer` that treats control tokens in the text as plain characters.

    Implements `text_side.Tokenizer`; voice and speed change nothing about how a text is spelled.
    """

    kind = "hf_bpe"
    aligned = False

    def __init__(self, tokenizer: Tokenizer) -> None:
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer

    def encode(self, text: str) -> list[int]:
        """Ids of `text`, never a control token's."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def estimate(self, text: str) -> int:
        """How many ids `encode` gives."""
        return len(self.encode(text))

    def turn(self, role: str, text: str) -> list[int]:
        """Ids of a role, a line break and a text, cut into words together, as in the filled-in template."""
        return self.encode(f"{role}\n{text}")

    @property
    def newline(self) -> list[int]:
        return self.encode("\n")

    def speaking(self, voice: str | None, speed: float) -> Self:
        return self

    def review(self, text: str) -> tuple[str, ...]:
        return ()

    def decode(self, ids: list[int]) -> str:
        """The text of `ids`, control tokens included."""
        text: str = self._tokenizer.decode(ids, skip_special_tokens=False)
        return text

    def token_id(self, token: str) -> int | None:
        """Id of a token by its content, e.g. "<|im_end|>"."""
        found: int | None = self._tokenizer.token_to_id(token)
        return found

    def save(self, path: Path) -> None:
        """Write tokenizer.json."""
        self._tokenizer.save(str(path), pretty=False)


def load_tokenizer(path: Path) -> TextTokenizer:
    """The tokenizer.json of a bundle; BundleError when it is unreadable."""
    from tokenizers import Tokenizer

    try:
        return TextTokenizer(Tokenizer.from_file(str(path)))
    except Exception as e:  # tokenizers raises bare Exception for every fault
        raise BundleError(f"{path} is not a readable tokenizer ({e}); convert or pull the bundle again.") from e


def read_tokenizer(folder: Path, split: str = QWEN2_SPLIT) -> TextTokenizer:
    """The tokenizer of a checkpoint folder; CheckpointError when files are missing or do not fit together.

    split: how text is cut into words, `QWEN2_SPLIT` or `OFFICIAL_SPLIT`. A checkpoint's own tokenizer.json keeps its split.
    """
    ready = folder / "tokenizer.json"
    value = load_json(ready) if os.path.isfile(ready) else _from_bpe(folder, split)
    added = value.get("added_tokens") or []
    if not isinstance(added, list) or not all(isinstance(token, dict) for token in added):
        raise CheckpointError(f"{ready}: added_tokens must be a list of objects; download it again.")
    for token in added:
        token["special"] = True  # so that one switch keeps all of them out of spoken text
    return _build(value, ready if os.path.isfile(ready) else folder / "vocab.json")


def _build(value: dict[str, Any], where: Path) -> TextTokenizer:
    from tokenizers import Tokenizer

    try:
        return TextTokenizer(Tokenizer.from_str(json.dumps(value)))
    except Exception as e:  # tokenizers raises bare Exception for every fault
        raise CheckpointError(f"{where} does not make a BPE tokenizer ({e}); download the checkpoint again.") from e


def _from_bpe(folder: Path, split: str) -> dict[str, Any]:
    """A tokenizer.json value out of Qwen2's three files."""
    vocab = load_json(folder / "vocab.json")
    added = load_json(folder / "tokenizer_config.json").get("added_tokens_decoder")
    if not isinstance(added, dict) or not added:
        raise CheckpointError(f"{folder / 'tokenizer_config.json'} has no added_tokens_decoder; download it again.")
    blank = {"lstrip": False, "rstrip": False, "normalized": False, "single_word": False}
    for number, entry in added.items():
        if not (number.isascii() and number.isdigit() and isinstance(entry, dict) and isinstance(entry.get("content"), str)):
            raise CheckpointError(f"{folder / 'tokenizer_config.json'}: the added token {number!r} is damaged; get it again.")
    tokens = [
        {"id": int(number), "content": entry["content"], "special": True, **blank}
        for number, entry in sorted(added.items(), key=lambda item: int(item[0]))
    ]
    cut = {"type": "Split", "pattern": {"Regex": split}, "behavior": "Isolated", "invert": False}
    to_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": tokens,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [cut, to_bytes]},
        "post_processor": None,
        "decoder": to_bytes,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocab,
            "merges": _merges(folder / "merges.txt"),
        },
    }


def _merges(path: Path) -> list[list[str]]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as e:
        raise CheckpointError(f"{path} cannot be read ({e.strerror}); a Qwen3-TTS checkpoint has this file.") from e
    except UnicodeDecodeError as e:
        raise CheckpointError(f"{path} is not UTF-8 text; download it again.") from e
    # only the first line can be a comment: "#" also begins merges
    pairs = [line.split(" ") for line in lines[lines[0].startswith("#version") :] if line]
    wrong = [p for p in pairs if len(p) != 2]
    if wrong:
        raise CheckpointError(f"{path} holds the line {' '.join(wrong[0])!r}, which is not a pair; download it again.")
    return pairs
