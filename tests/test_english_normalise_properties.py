"""What holds for any text: allowed characters only, no error, and nothing left to do in what was done."""

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouzel.english.normalise import normalise

SPOKEN = re.compile(r"(?:[A-Za-z]+(?:'[A-Za-z]+)*'?(?:[,.?!;:] | |[,.?!;:]?$))*")
PIECES = """
A a I FBI US Dr. St. Mr etc. no. No. p. e.g. Ph.D. U.S. a.m. pm 5 12 1998 2024 3rd 1/2 $ € £ % ° °C km kg m " ' - -- — – ...
. , ; : ? ! ( ) [ ] @ # & * + = < > / \\ | ~ ^ _ é ß 日 👍 π Ω µ ½ ² ⁸ Henry VIII World War II V John May Jan. Sat. Co. Inc.
the in of on at HELLO NASA DVDs CEO's iPhone OpenAI B2B A4 v2.5 www.x.com a@b.co http:// 7:45 18:05 10-20 555-0199 1,000 2.5
.5 -5 'A' A' 1.2.3 1e6 2^10 5'11" 3x4 #tag C++ sooooo xyz bcd Plan Oak o'clock OK O.K. Tolkien He 007 1990s '90s 'n' w/
and/or J. R. max. al. III D. \x00 \ud800 \u0301 \u200d
""".split()
ANYTHING = st.text(max_size=60)
TYPED = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(["", " ", " ", "\n", ". "])), max_size=10).map(
    lambda pairs: "".join(a + b for a, b in pairs)
)
KNOWN = st.sampled_from([None, lambda word: len(word) % 2 == 0, lambda word: word in ("hello", "plan", "oak", "dvds", "openai")])


@given(text=ANYTHING | TYPED, known=KNOWN)
@settings(deadline=None, max_examples=300)
def test_only_spoken_characters_come_out_and_they_stay(text, known):
    spoken = normalise(text, known)
    assert SPOKEN.fullmatch(spoken.text), spoken.text
    assert spoken.text == spoken.text.strip()
    assert normalise(spoken.text, known).text == spoken.text
    assert len(set(spoken.unspeakable)) == len(spoken.unspeakable)
    assert set(spoken.unspeakable) <= set(text)
    assert not any(c.isascii() or unicodedata.combining(c) for c in spoken.unspeakable)


@given(st.text("0123456789", min_size=1, max_size=60))
@settings(deadline=None, max_examples=100)
def test_digits_of_any_length_are_read(digits):
    assert re.fullmatch("[a-z]+(?:,? [a-z]+)*", normalise(digits).text)


@pytest.mark.parametrize(
    "piece", ["a", "A", "1", "1,", "1.", "1-", "'", '5"', "(", "a@", "A.", "-1 ", "日", "aA", "www.", "1/", ": "]
)
def test_hostile_length_is_no_error(piece):
    """Quadratic steps would take minutes here."""
    assert SPOKEN.fullmatch(normalise(piece * (8000 // len(piece))).text)
