"""A byte-level BPE tokenizer in Qwen2's file layout for random checkpoints: bytes, two role words, control tokens.

Text becomes one id a byte; only "assistant" and "user" are merged, because the prompt's template counts on one id each
(contract 4.2). `published` keeps the ids of the published models, `small` packs everything below 320.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# ids 151643.. in the published models; * marks those that are ordinary text to a tokenizer that skips special tokens
CONTROL = """<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|> <|box_end|>
<|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|> *<tool_call>
*</tool_call> *<|fim_prefix|> *<|fim_middle|> *<|fim_suffix|> *<|fim_pad|> *<|repo_name|> *<|file_sep|>
*<tool_response> *</tool_response> *<think> *</think> <|audio_start|> <|audio_end|> <tts_pad> <tts_text_bos>
<tts_text_eod> <tts_text_bos_single> <|audio_pad|>""".split()
ROLES = {"assistant": 77091, "user": 872}  # published ids
FIRST_CONTROL = {False: 288, True: 151643}
TEXT_VOCAB = {False: 336, True: 151936}


def byte_characters() -> list[str]:
    """The 256 printable stand-ins of byte-level BPE in id order: printable Latin-1 first, then 256 upwards."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in printable]
    stand_in = {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(rest)}
    return [stand_in[b] for b in [*printable, *rest]]


def write_tokenizer(folder: Path, *, published: bool) -> tuple[dict[str, int], int]:
    """Write vocab.json, merges.txt, tokenizer_config.json; returns (the text ids of config.json, text vocabulary size)."""
    vocab = {character: i for i, character in enumerate(byte_characters())}
    first = FIRST_CONTROL[published]
    taken = set(ROLES.values()) if published else set()
    free = (i for i in range(256, first) if i not in taken)
    merges = []
    for word, word_id in ROLES.items():
        for end in range(2, len(word) + 1):
            merges.append(f"{word[: end - 1]} {word[end - 1]}")
            vocab[word[:end]] = word_id if published and end == len(word) else next(free)
    # readers that number control tokens by counting need a vocabulary without gaps
    vocab |= {f"Ġunused{i}": i for i in free}
    control = [name.lstrip("*") for name in CONTROL]
    _dump(folder / "vocab.json", vocab)
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n", encoding="utf-8")
    _dump(folder / "tokenizer_config.json", _settings(first))
    _dump(folder / "preprocessor_config.json", {"processor_class": "Qwen3TTSProcessor"})
    ids = {
        "im_start_token_id": first + control.index("<|im_start|>"),
        "im_end_token_id": first + control.index("<|im_end|>"),
        "assistant_token_id": vocab["assistant"],
        "tts_pad_token_id": first + control.index("<tts_pad>"),
        "tts_bos_token_id": first + control.index("<tts_text_bos>"),
        "tts_eos_token_id": first + control.index("<tts_text_eod>"),
    }
    return ids, TEXT_VOCAB[published]


def _settings(first: int) -> dict[str, Any]:
    plain = {"lstrip": False, "rstrip": False, "normalized": False, "single_word": False}
    added = {
        str(first + i): {"content": name.lstrip("*"), "special": not name.startswith("*"), **plain}
        for i, name in enumerate(CONTROL)
    }
    return {
        "tokenizer_class": "Qwen2Tokenizer",
        "processor_class": "Qwen3TTSProcessor",
        "added_tokens_decoder": added,
        "add_bos_token": False,
        "add_prefix_space": False,
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "unk_token": None,
        "errors": "replace",
        "model_max_length": 131072,
        "split_special_tokens": False,
        "clean_up_tokenization_spaces": False,
    }


def _dump(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")
