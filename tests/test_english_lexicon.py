"""How words are said: the dictionary, words made of its words, and letters to sounds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouzel.english import PHONES
from ouzel.english.lexicon import Lexicon, default_lexicon
from ouzel.english.phones import is_vowel
from ouzel.english.word_store import WordStore, write_words

HELD_OUT = Path(__file__).parent / "golden" / "english_held_out.txt"


def said(word: str) -> str:
    return " ".join(default_lexicon().pronounce(word))


@pytest.mark.parametrize(
    ("word", "phones"),
    [
        ("hello", "HH AH0 L OW1"),
        ("read", "R IY1 D"),  # of the readings that the voice was trained with
        ("close", "K L OW1 Z"),
        ("a", "AH0"),
        ("wound", "W UW1 N D"),
        ("tears", "T IH1 R Z"),
        ("bluetooth", "B L UW1 T UW2 TH"),
        ("covid", "K OW1 V IH0 D"),
        ("dont", "D OW1 N T"),
        ("https", "EY2 CH T IY2 T IY2 P IY2 EH1 S"),
    ],
)
def test_words_of_the_dictionary(word, phones):
    assert said(word) == phones
    assert default_lexicon().knows(word)


def test_single_capitals_are_letter_names():
    assert said("A") == "EY1"
    assert said("W") == "D AH1 B AH0 L Y UW0"
    assert said("Z") == "Z IY1"


@pytest.mark.parametrize(
    ("word", "phones"),
    [
        ("chatbot's", "CH AE1 T B AA2 T S"),
        ("paywalls", "P EY1 W AO2 L Z"),
        ("workbenches", "W ER1 K B EH2 N CH AH0 Z"),
        ("googling", "G UW1 G AH0 L IH0 NG"),
        ("vlogged", "V L AA1 G D"),
        ("retweeted", "R IY0 T W IY1 T IH0 D"),
        ("mightn't", "M AY1 T AH0 N T"),
        ("chatbot'll", "CH AE1 T B AA2 T AH0 L"),
        ("they'd've", "DH EY1 D AH0 V"),
        ("dogs'", "D AO1 G Z"),
        ("unfriendliness", "AH0 N F R EH1 N D L IY0 N AH0 S"),
        ("microblogging", "M AY2 K R OW0 B L AO1 G IH0 NG"),
        ("organisation", "AO2 R G AH0 N IH0 Z EY1 SH AH0 N"),
        ("colours", "K AH1 L ER0 Z"),
        ("centre", "S EH1 N T ER0"),
        ("snowboarding", "S N OW1 B AO2 R D IH0 NG"),
        ("moonbase", "M UW1 N B EY2 S"),
    ],
)
def test_words_made_of_known_words(word, phones):
    assert said(word) == phones
    assert default_lexicon().knows(word)


@pytest.mark.parametrize(
    ("word", "phones"),
    [
        ("aaaaah", "AA1"),
        ("sooooon", "S UW1 N"),
        ("nooooo", "N OW1"),
        ("xzqv", "EH2 K S Z IY2 K Y UW2 V IY1"),
        ("vpns", "V IY2 P IY2 EH1 N Z"),
    ],
)
def test_drawn_out_and_unsayable_words_are_guessed(word, phones):
    assert said(word) == phones
    assert not default_lexicon().knows(word)


def test_capitals_accents_and_strange_apostrophes_are_read():
    assert said("Hello") == said("HELLO") == said("hello")
    assert said("café") == said("cafe")
    assert said("don’t") == said("don't")


@pytest.mark.parametrize("word", ["", "'", "42", "Привет", "—"])
def test_nothing_to_say_gives_no_phones(word):
    assert default_lexicon().pronounce(word) == ()
    assert not default_lexicon().knows(word)


@given(st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyz'"), max_size=70))
def test_any_letters_can_be_said(word):
    phones = default_lexicon().pronounce(word)
    letters = len(re.sub("[^a-z]", "", word))
    assert set(phones) <= set(PHONES) - {"_"}
    assert any(map(is_vowel, phones)) == (letters > 0)
    assert len(phones) <= 9 * letters


@given(st.text(max_size=30))
def test_any_text_is_met_without_an_error(word):
    assert set(default_lexicon().pronounce(word)) <= set(PHONES) - {"_"}


@pytest.mark.parametrize(
    "word", ["pneumonoultramicroscopicsilicovolcanoconiosis" * 2, "blorkation" * 40, "a" * 5000, "bcdfg" * 100]
)
def test_long_words_are_said_in_full_and_end(word):
    phones = default_lexicon().pronounce(word)
    assert any(map(is_vowel, phones))
    assert len(phones) <= 2 * len(word)


def test_unknown_words_are_said_about_as_well_as_measured():
    right = wrong = 0
    for line in HELD_OUT.read_text().splitlines():
        word, *readings = line.split("\t")
        bare = [re.sub("[012]", "", reading) for reading in readings]
        guess = default_lexicon()._guess.pronounce(word)
        right += re.sub("[012]", "", " ".join(guess)) in bare
        wrong += re.sub("[012]", "", " ".join(guess)) not in bare
        assert sum(phone.endswith("1") for phone in guess) == 1
    assert right + wrong == 300
    assert right / (right + wrong) > 0.65


def test_a_store_gives_back_what_was_written(tmp_path):
    words = {
        f"{a}{b}{c}": (a.upper(), f"{b.upper()}H1", c.upper())
        for a in "bdgz"
        for b in "aou"
        for c in "abcdefghijklmnopqrstuvwxyz'"
    }
    write_words(tmp_path / "words.bin", words, {"bac"})
    store = WordStore(tmp_path / "words.bin")
    assert {word: store.get(word) for word in words} == words
    assert store.ordinary("bac") == ("B", "AH1", "C")
    assert store.ordinary("dab") is None
    for absent in ("", "b", "ba", "bacc", "aaa", "zzz", "é", "bac\nbad"):
        assert store.get(absent) is None


def test_another_file_is_no_store(tmp_path):
    path = tmp_path / "words.bin"
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="no list of words"):
        WordStore(path)
    with pytest.raises(FileNotFoundError):
        Lexicon(WordStore(tmp_path / "none.bin"), path)
