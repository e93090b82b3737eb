"""Long text in pieces: within the budget, few, cut where a speaker would pause, nothing lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouzel.errors import UsageError
from ouzel.text import speakable, split_budget

BEST_OF_TIMES = (
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, "
    "it was the epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the season of Darkness."
)


def words(text: str) -> int:
    """A token counter with a token a word."""
    return len(text.split())


def pairs(text: str) -> int:
    """A token counter that merges: fewer tokens for longer text, and not monotone ("ab" is one, "a" and "b" are two)."""
    return len(text.replace("ab", "x").replace("xx", "x"))


def test_text_within_the_budget_stays_one_piece():
    text = "One. Two, three.\nFour."
    assert split_budget(text, words, 4) == [text]
    assert split_budget(f"  {text}\n", words, 4) == [text]


@pytest.mark.parametrize("text", ["", "  ", "…", "— 👍"])
def test_text_without_speech_gives_no_piece(text):
    assert split_budget(text, words, 1) == []


def test_sentences_first_and_merged_while_they_fit():
    assert split_budget("One two. Three. Four five six. Seven.", words, 3) == ["One two. Three.", "Four five six.", "Seven."]
    assert split_budget("Dr. Who came. No. 5 left.", words, 3) == ["Dr. Who came.", "No. 5 left."]


def test_a_long_sentence_is_cut_between_clauses():
    pieces = split_budget(BEST_OF_TIMES, words, 20)
    assert " ".join(pieces) == BEST_OF_TIMES
    assert all(piece[-1] in ",." and words(piece) <= 20 for piece in pieces)
    assert len(pieces) == 3


def test_then_between_words_then_between_characters():
    assert split_budget("one two three four five", words, 2) == ["one two", "three four", "five"]
    assert split_budget("abcdefghij kl", len, 4) == ["abcd", "efgh", "ij", "kl"]
    assert split_budget("今天天气很好我们去公园吧", len, 5) == ["今天天气很", "好我们去公", "园吧"]


def test_combined_characters_stay_whole_while_the_budget_allows():
    assert split_budget("e\u0301" * 5, len, 5) == ["e\u0301" * 2, "e\u0301" * 2, "e\u0301"]
    assert split_budget("हिन्दी", len, 4) == ["हिन्", "दी"]
    assert split_budget("a\u0301\u0302\u0303b", len, 2) == ["a\u0301", "b"]


def test_a_budget_below_one_character_is_an_error():
    with pytest.raises(UsageError, match=r"2 tokens is too small for '好', which alone needs 3"):
        split_budget("好人", lambda text: len(text.encode()), 2)
    with pytest.raises(UsageError, match="at least 1, not 0"):
        split_budget("a", len, 0)


def test_the_number_of_counts_grows_with_the_text_not_with_its_square():
    def counts(text: str) -> int:
        calls = 0

        def counter(piece: str) -> int:
            nonlocal calls
            calls += 1
            return len(piece)

        split_budget(text, counter, 200)
        return calls

    for unit in ("A short sentence. ", "word ", "字", "clause here, ", "x", ". "):
        small, large = counts("a" + unit * 500), counts("a" + unit * 2000)
        assert large <= 4.5 * small + 50


def test_pieces_of_a_long_text_are_full():
    pieces = split_budget("Some words make a sentence here. " * 300, words, 50)
    assert all(48 <= words(piece) <= 50 for piece in pieces[:-1])


TEXTS = st.lists(
    st.sampled_from(
        ["a", "b", "ab", " ", ". ", ", ", "word ", "\n", "。", "，", "好", "e\u0301", "—", "👍", "Dr. ", "abababababab"]
    ),
    max_size=60,
).map("".join)


@given(TEXTS, st.integers(3, 30), st.sampled_from([len, words, pairs]))
@settings(max_examples=300)
def test_every_piece_fits_and_nothing_speakable_is_lost(text, budget, counter):
    pieces = split_budget(text, counter, budget)
    assert all(counter(piece) <= budget and speakable(piece) and piece == piece.strip() for piece in pieces)
    assert [c for piece in pieces for c in piece if c.isalnum()] == [c for c in text if c.isalnum()]
    if counter(text.strip()) <= budget:
        assert pieces == ([text.strip()] if speakable(text) else [])


@given(TEXTS, st.integers(3, 30))
def test_pieces_are_few(text, budget):
    """A piece and its successor never fit together, so two of them use up more than the budget."""
    assert len(split_budget(text, len, budget)) <= 2 * len(text) / budget + 1
