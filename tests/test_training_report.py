"""Figures and page of the voice report, from judged sentences made by hand."""

import json
from pathlib import Path

import numpy as np
import pytest
from training.voice.agreement import Choices, agreement, compare
from training.voice.costs import parts
from training.voice.findings import Compared, Findings, table
from training.voice.gates import gates
from training.voice.listening import Book, Heard, Item, Spoken, items, listen
from training.voice.page import page
from training.voice.tally import astray, edges, margin, rate, repeated, rtf, skipped

from ouzel.bundle import open_bundle
from ouzel.errors import ConfigError
from toy_bundle import registered, write_bundle


def heard(said: str, got: str, speaker: str = "fern", **changes: object) -> Heard:
    toward = [1.0, 0.0] if speaker == "fern" else [0.0, 1.0]
    values: dict[str, object] = {
        "set": "everyday", "text": said, "said": said, "speaker": speaker, "heard": got, "seconds": 2.0, "finish": "stop",
        "frames": 25, "expected": 24, "cpu": 0.2, "mos": (3.5, 4.0, 3.2), "pitch": (200.0, 3.0, 10.0), "embedding": toward,
    }  # fmt: skip
    return Heard(**{**values, **changes})


def test_rates_add_up_words_not_sentences():
    found = rate([heard("one two three four", "one two three four"), heard("five six", "five")])
    assert (found.errors, found.words) == (1, 6)
    assert found.rate == pytest.approx(1 / 6)
    assert found.low <= found.rate <= found.high
    assert rate([]).rate == 0.0


@pytest.mark.parametrize(
    ("said", "got", "lost", "twice"),
    [
        ("the cat sat", "the cat sat", 0, 0),
        ("the cat sat", "the sat", 1, 0),
        ("the cat sat", "", 3, 0),
        ("and form a rainbow", "and former rainbow", 0, 0),
        ("the quick brown fox jumps", "the crown jumps", 1, 0),
        ("the cat sat", "the cat cat sat", 0, 1),
        ("the cat sat", "the cat the cat sat", 0, 1),
        ("it was very very late", "it was very very late", 0, 0),
        ("three zero zero", "300", 0, 0),
        ("a woodchuck chuck", "a wood chuck chuck", 0, 0),
    ],
)
def test_skipped_and_repeated_words(said: str, got: str, lost: int, twice: int):
    assert (skipped(heard(said, got)), repeated(heard(said, got))) == (lost, twice)


@pytest.mark.parametrize(
    ("got", "both"),
    [
        ("call my brother", (True, True)),
        ("my brother", (False, True)),
        ("call my", (True, False)),
        ("cool my brother", (False, True)),
        ("call your brother", (True, True)),
        ("", (False, False)),
        ("oh call my brother", (True, True)),
    ],
)
def test_first_and_last_word(got: str, both: tuple[bool, bool]):
    assert edges(heard("call my brother", got)) == both


def test_utterances_that_go_astray():
    assert astray(heard("a", "a")) == ""
    assert astray(heard("a", "a", frames=60)) == "too long"
    assert astray(heard("a", "a", frames=10)) == "too short"
    assert astray(heard("a", "a", finish="length")) == "length"
    assert astray(heard("a", "a", expected=0, frames=400)) == ""


def test_margin_between_speakers():
    found = margin([heard("a", "a"), heard("b", "b"), heard("a", "a", "moss"), heard("b", "b", "moss")])
    assert (found.same, found.cross, found.right) == (1.0, 0.0, 1.0)
    alike = margin(
        [heard("a", "a"), heard("b", "b"), heard("a", "a", "moss", embedding=[1.0, 0.0]), heard("b", "b", "moss", embedding=[])]
    )
    assert alike.right < 1.0
    assert margin([heard("a", "a"), heard("b", "b")]).same == 0.0


def test_rtf_is_cpu_over_audio():
    assert rtf([heard("a", "a"), heard("b", "b", cpu=0.4)]) == pytest.approx(0.15)
    assert rtf([]) == 0.0


def test_a_book_remembers_and_survives_a_broken_line(tmp_path: Path):
    path = tmp_path / "deep" / "book.jsonl"
    Book(path).add(heard("one", "one"))
    with open(path, "a", encoding="utf-8") as file:
        file.write('{"set": "every')
    book = Book(path)
    assert book.get(Item("everyday", "one", "one"), "fern") == heard("one", "one")
    assert book.get(Item("everyday", "one", "one"), "moss") is None
    assert book.get(Item("everyday", "one", "one"), "fern", "another version") is None
    now = book.get(Item("numbers", "one", "won"), "fern")
    assert now is not None
    assert (now.set, now.score.errors) == ("numbers", 1)


class Silent:
    """Says nothing and counts how often; silence needs none of the judges' models."""

    key = "silent"

    def __init__(self) -> None:
        self.said = 0

    def version(self, item: Item, speaker: str) -> str:
        return "1"

    def speak(self, item: Item, speaker: str) -> Spoken:
        self.said += 1
        return Spoken(np.zeros(0, np.float32), "error: broken")


def test_listening_resumes(tmp_path: Path):
    source, wanted, notes = Silent(), items(["benchmark"])[:3], []
    first = listen(source, tmp_path, wanted[:2], lambda: None, notes.append)
    again = listen(source, tmp_path, wanted, lambda: None, notes.append)
    assert source.said == 6  # three sentences of two speakers, each once
    assert again[:4] == first
    assert all(h.heard == "" and h.finish == "error: broken" for h in again)
    assert notes


def findings(**changes: object) -> Findings:
    mine = [heard("the cat sat", "the cat sat"), heard("the cat sat", "the bat sat", "moss"), heard("no", "no", set="short")]
    mine += [heard("go", "go", "moss", set="short"), heard("a dog", "a dog"), heard("a dog", "a dog", "moss")]
    teacher = [heard("the cat sat", "the hat sat"), heard("the cat sat", "the cat sat", "moss")]
    values = {
        "name": "toy",
        "key": "abc",
        "options": {"seed": 7},
        "heard": mine,
        "teacher": teacher,
        "first": None,
        "parts": {"tables": 10},
    }
    return Findings(**{**values, **changes})


def test_gates_tell_what_is_met():
    lines = {line.split("|")[1].strip(): line.split("|")[-2].strip() for line in gates(findings()).splitlines()[2:]}
    assert lines["WER, everyday"] == "**no**"  # moss: one of five words
    assert lines["words skipped, three sets"] == "yes"
    assert lines["first word heard, 1 to 5 words"] == "yes"
    assert lines["speakers told apart"] == "yes"
    assert lines["DNSMOS below the teacher"] == "yes"
    assert "WER, numbers" not in lines  # not measured is not met
    worse = findings(heard=[heard("a cat", "a cat", mos=(3.0, 4.0, 2.7)), heard("a cat", "a cat", "moss", finish="length")])
    lines = {line.split("|")[1].strip(): line.split("|")[-2].strip() for line in gates(worse).splitlines()[2:]}
    assert lines["DNSMOS below the teacher"] == "**no**"
    assert lines["utterances that ran away or broke off"] == "**no**"


def test_edges_are_measured_by_the_teachers():
    """A listener who mishears the teacher too says nothing about the voice."""
    good, bad = heard("Perfect!", "Perfect.", set="short"), heard("Perfect!", "Perfecto.", set="short")
    for mine, teacher, met in ((good, bad, "yes"), (bad, bad, "**no**"), (bad, good, "**no**"), (good, good, "yes")):
        lines = gates(findings(heard=[mine], teacher=[teacher])).splitlines()
        (line,) = [line for line in lines if "first word" in line]
        assert line.endswith(f"| {met} |")


def test_the_page_lists_every_sentence_and_error():
    text = page(findings(samples={"everyday-fern.wav": "fern: the cat sat"}))
    assert "| the cat sat | the bat sat | 1: cat/bat |" in text
    assert "| the cat sat | the cat sat |  | the hat sat | 1 |" in text
    assert "(voice/everyday-fern.wav)" in text
    assert "Other weights" not in text
    other = Compared("int4", 5_000_000, findings().heard, None)
    assert "| int4 | 5.0 |" in page(findings(compared=[other]))


def test_a_table_keeps_its_cells():
    assert table(["a"], [["x|y\nz"]]) == "| a |\n|---|\n| x\\|y z |\n"


def test_agreement_counts_frames_and_codes():
    wanted = Choices(np.array([1, 2, 9]), np.array([[5, 6], [7, 8]]))
    got = Choices(np.array([1, 3, 9]), np.array([[5, 6], [7, 0]]))
    found = agreement([wanted], [got])
    assert found.first == pytest.approx(2 / 3)  # the end counts
    assert found.all == pytest.approx(1 / 2)
    assert found.each == pytest.approx(4 / 6)


def test_bundles_of_different_checkpoints_are_not_compared(tmp_path: Path):
    with registered():
        one, two = write_bundle(tmp_path / "one"), write_bundle(tmp_path / "two")
        manifest = json.loads((two / "manifest.json").read_text())
        manifest["source"] = {"files": {"model.safetensors": "another"}}
        (two / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(ConfigError, match="different checkpoints"):
            compare(one, [two], [("A toy speaks.", "toy")])


def test_a_bundle_agrees_with_itself(tmp_path: Path):
    with registered():
        path = write_bundle(tmp_path / "toy")
        (found,) = compare(path, [path], [("A toy speaks.", "toy")])
        sizes = parts(open_bundle(path))
    assert (found.first, found.all, found.each) == (1.0, 1.0, 1.0)
    assert sizes["decoder (fp32)"] == 3
    assert sum(sizes.values()) == sum(entry.size for entry in open_bundle(path).manifest.files.values())
