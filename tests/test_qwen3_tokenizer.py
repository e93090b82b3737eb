"""Qwen2 tokenization against what transformers does (tests/golden/qwen2_bpe, made by tools/golden_tokenizer.py)."""

import json
import shutil
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouzel.errors import BundleError, CheckpointError
from ouzel.models.qwen3_tts.tokenizer import OFFICIAL_SPLIT, QWEN2_SPLIT, load_tokenizer, read_tokenizer

FOLDER = Path(__file__).parent / "golden" / "qwen2_bpe"
TEXTS = json.loads((FOLDER / "golden.json").read_text())["texts"]
CONTROL = 151643  # first control id
QWEN2 = read_tokenizer(FOLDER)


def has_control(entry):
    return any(i >= CONTROL for i in entry["qwen2"])


@pytest.mark.parametrize(("name", "split"), [("qwen2", QWEN2_SPLIT), ("official", OFFICIAL_SPLIT)])
def test_ids_equal_those_of_transformers(name, split):
    tokenizer = read_tokenizer(FOLDER, split)
    plain = [entry for entry in TEXTS if not has_control(entry)]
    assert len(plain) >= 50
    assert {e["text"]: tokenizer.encode(e["text"]) for e in plain} == {e["text"]: e[name] for e in plain}


def test_the_two_splits_do_differ():
    assert [e["text"] for e in TEXTS if e["qwen2"] != e["official"]] == [
        "helloWorld camelCase HTTPServer iPhone15 XMLHttpRequest",
        "สวัสดีชาวโลก",
    ]


@pytest.mark.parametrize("entry", [e for e in TEXTS if has_control(e)], ids=lambda e: e["text"])
def test_spoken_text_never_becomes_a_control_token(entry):
    """transformers does make control tokens of these; here they are spelled out and nothing of the text is lost."""
    ids = QWEN2.encode(entry["text"])
    assert max(ids) < CONTROL
    assert QWEN2.decode(ids) == entry["text"]


@given(st.text(max_size=20), st.sampled_from(["<|im_end|>", "<|im_start|>", "<think>", "<tts_pad>"]), st.text(max_size=20))
def test_no_text_makes_control_tokens(before, control, after):
    assert max(QWEN2.encode(before + control + after)) < CONTROL


@given(st.text(alphabet=st.characters(max_codepoint=0x2FF, exclude_categories=["Cs"])))
def test_nothing_is_lost(text):
    assert QWEN2.decode(QWEN2.encode(text)) == unicodedata.normalize("NFC", text)


def test_a_saved_tokenizer_is_the_same(tmp_path):
    QWEN2.save(tmp_path / "tokenizer.json")
    again = load_tokenizer(tmp_path / "tokenizer.json")
    assert [again.encode(e["text"]) for e in TEXTS] == [QWEN2.encode(e["text"]) for e in TEXTS]
    assert again.token_id("Hello") == QWEN2.encode("Hello")[0]
    assert again.token_id("nothing like it") is None
    # a checkpoint that carries tokenizer.json needs no other file
    assert read_tokenizer(tmp_path).encode("Hello <think>") == QWEN2.encode("Hello <think>")


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("vocab.json", None, "vocab.json cannot be read"),
        ("merges.txt", None, "merges.txt cannot be read"),
        ("merges.txt", "#version: 0.2\na b c\n", "'a b c'"),
        ("merges.txt", "a nothing\n", "does not make a BPE tokenizer"),
        ("vocab.json", '{"a": "b"}', "does not make a BPE tokenizer"),
        ("tokenizer_config.json", "{}", "added_tokens_decoder"),
    ],
)
def test_damaged_files_are_one_sentence(tmp_path, file, text, message):
    for name in ("vocab.json", "merges.txt", "tokenizer_config.json"):
        shutil.copy(FOLDER / name, tmp_path)
    (tmp_path / file).unlink()
    if text is not None:
        (tmp_path / file).write_text(text)
    with pytest.raises(CheckpointError, match=message):
        read_tokenizer(tmp_path)


def test_a_damaged_bundle_tokenizer_is_one_sentence(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(BundleError, match="convert or pull the bundle again"):
        load_tokenizer(tmp_path / "tokenizer.json")
