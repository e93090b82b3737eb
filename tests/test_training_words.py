"""What counts as the same words in the voice report, whoever writes them down."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from training.voice.figures import FIGURE, cardinal, number, ordinal, readings
from training.voice.sentences import SETS, SHORT, read
from training.voice.wording import wer, words

SAME = [
    ("109", "one hundred and nine"),
    ("one hundred nine", "one hundred and nine"),
    ("a hundred and nine", "109"),
    ("page two hundred and thirty", "Page 230."),
    ("flight six hundred and eight", "Flight 608"),
    ("flight six oh eight", "Flight 608"),
    ("$19.50", "nineteen dollars and fifty cents"),
    ("nineteen dollars and fifty cents", "It's $19.50".removeprefix("It's ")),
    ("one dollar", "$1"),
    ("three pounds and one penny", "£3.01"),
    ("one thousand two hundred tickets", "1,200 tickets"),
    ("twelve hundred tickets", "1200 tickets"),
    ("the train leaves at seven forty five", "The train leaves at 7:45."),
    ("the train leaves at seven forty five", "The train leaves at 745."),
    ("at seven o'clock", "at 7:00"),
    ("at seven oh five", "at 7:05"),
    ("at seven a m", "at 7 a.m."),
    ("at seven p m", "at 7PM"),
    ("on march third nineteen ninety eight", "On March 3rd, 1998."),
    ("on march third nineteen ninety eight", "on March 3, 1998"),
    ("in twenty twenty four", "In 2024"),
    ("in two thousand twenty four", "in 2024"),
    ("in the nineteen eighties", "in the 1980s"),
    ("the fourth of july", "The 4th of July"),
    ("eighty first", "81st"),
    ("two point five", "2.5"),
    ("it is two point five.", "It is 2.5."),
    ("one two three", "1.2.3"),
    ("three point one four", "3.14"),
    ("three zero nine four", "3094"),
    ("three oh nine four", "3 0 9 4"),
    ("seventy five percent", "75%"),
    ("seventy five per cent", "75 percent"),
    ("eighteen degrees", "18°"),
    ("one in ten", "1 in 10"),
    ("the f b i and the b b c", "The FBI and the BBC"),
    ("the f b i", "the F.B.I."),
    ("a b and c d", "AB and CD"),
    ("mister carter", "Mr. Carter"),
    ("missus bennett", "Mrs. Bennett"),
    ("doctor brown of oak street", "Dr. Brown of Oak St."),
    ("saint paul", "St. Paul"),
    ("she sells sea shells", "She sells seashells."),
    ("raindrops in the air", "rain drops in the air"),
    ("how much wood would a woodchuck chuck", "How much wood would a wood chuck chuck?"),
    ("a well known man", "A well-known man"),
    ("don't", "dont"),
    ("it's five o’clock", "It's 5:00"),
    ("the colour of the theatre", "The color of the theater"),
    ("ok", "Okay"),
    ("I cannot go", "I can not go"),
    ("", "..."),
]


@pytest.mark.parametrize(("reference", "heard"), SAME)
def test_the_same_words_differently_written(reference: str, heard: str):
    assert wer(reference, heard).errors == 0
    assert wer(heard, reference).errors == 0


@pytest.mark.parametrize(
    ("reference", "heard", "errors", "count"),
    [
        ("the brown fox", "the crown fox", 1, 3),
        ("the brown fox", "the fox", 1, 3),
        ("the brown fox", "the brown brown fox", 1, 3),
        ("the brown fox", "", 3, 3),
        ("", "the", 1, 0),
        ("one hundred and nine", "190", 1, 3),
        ("nineteen dollars and fifty cents", "$19.15", 1, 4),
        ("seven forty five", "7:54", 2, 3),
        ("salt and pepper", "salt pepper", 1, 3),
        ("a cat", "the cat", 1, 2),
        ("it is nine", "it is 5", 1, 3),
    ],
)
def test_other_words_are_errors(reference: str, heard: str, errors: int, count: int):
    score = wer(reference, heard)
    assert (score.errors, score.words) == (errors, count)


def test_the_alignment_names_the_words():
    errors, count, ops = wer("the quick brown fox jumps", "Quick crown fox jumps over")
    assert (errors, count) == (3, 5)
    assert ops == [("delete", "the", ""), ("substitute", "brown", "crown"), ("insert", "", "over")]
    assert wer("act as a prism and form a rainbow", "act as a prism and former rainbow").ops == [
        ("substitute", "form a", "former")
    ]


@settings(max_examples=30)
@given(st.integers(0, 10**15 - 1))
def test_a_number_is_heard_as_written(value: int):
    said = " ".join(cardinal(value))
    assert wer(said, f"{value}").errors == 0
    assert wer(said, f"{value:,}").errors == 0


@settings(max_examples=30)
@given(st.integers(0, 99999), st.integers(0, 99999))
def test_different_numbers_are_not_the_same_words(a: int, b: int):
    same = set(number(str(a))) & set(number(str(b)))
    assert (a == b) == bool(same)


@settings(max_examples=30)
@given(st.text(alphabet="0123456789.,:$£€%°'-/ snrdthap", max_size=60))
def test_no_figure_is_too_odd_to_be_read(text: str):
    assert wer(text, text).errors == 0


def test_ordinals():
    assert [" ".join(ordinal(n)) for n in (1, 2, 3, 12, 20, 21, 100)] == [
        "first", "second", "third", "twelfth", "twentieth", "twenty first", "one hundredth",
    ]  # fmt: skip


def test_the_likeliest_reading_comes_first():
    first = {text: " ".join(readings(FIGURE.match(text))[0]) for text in ("1998", "1200", "7:30", "0042", "10s")}
    assert first == {
        "1998": "nineteen ninety eight",
        "1200": "one thousand two hundred",
        "7:30": "seven thirty",
        "0042": "zero zero four two",
        "10s": "tens",
    }


def test_long_rows_of_digits_are_read_one_by_one():
    assert words("1" * 16) == ["one"] * 16
    assert words("$" + "1" * 16)[-1] == "dollars"


@pytest.mark.parametrize("name", [*SETS, SHORT])
def test_held_out_sentences_are_written_as_they_are_said(name: str):
    """What a listener writes down has no figures, and is the same words as the text to be spoken."""
    pairs = read(name)
    assert pairs
    for text, said in pairs:
        assert not any(char.isdigit() for char in said)
        assert wer(said, text).errors == 0, text


def test_short_sentences_are_short():
    assert all(1 <= len(text.split()) <= 5 for text, _ in read(SHORT))
