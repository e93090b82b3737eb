"""The splitter: tricky texts, chunk independence, bounded memory, agreement with the server."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouzel.errors import UsageError
from ouzel.text import MAX_TEXT_CHARS, SOFT_LIMIT, Splitter, speakable, split

GOLDEN = json.loads((Path(__file__).parent / "golden" / "text_split.json").read_text(encoding="utf-8"))

# "|" shows where the segments end; the text itself is the line without the bars.
SENTENCES = """
Pi is 3.14 and e is 2.718.| Next.
98.6°F is normal.| Ok.
Dr. Sharma arrived at 9:30 a.m., and Mrs. O’Neil at 10 p.m. They met.
22,1 °C bei 45 %
$3.5 for small, $4 for large.| Ok.
Version v1.0.0 is out.| Get it.
Apples, e.g. Boskoop, i.e. red ones.| Ok.
The U.S. is big.| The U.S.A. too.
J. R. R. Tolkien wrote it.| I. Newton did not.| J.-P. Sartre (A. C. Doyle).
No. 5 is alive.| No.| I said no.
Jan. 5, vol. 2, p. 7, fig. 3 and op. 27 are fine.| The fig.| She ate.
I like it etc. and so on, etc.| The end.
"Really?" she asked.| "Yes."| He left.| “No!” he cried.
(Really.)| [Yes!]| Ok.
Wait... what?| Wait...| No.
Well . . . yes.| No
Hello!!!| What?!| Yes…| Then
Is it?| yes it is!| ok
See https://a.example/c.d?x=1.2!y, or me.you@x.example.| Then go to www.a.example.| Bye
3. Third item.| 4. Fourth item.| It cost 3.| Then 4.
am 3. Oktober 1990, am 4. und 5. Mai.| Ja.
z. B. der Hr. Dr. Müller u. a. aus der Schulstr. 5 bzw. Nr. 7.| Ja.
M. Dupont et Mme. Durand.| « Oui. » dit-il.| Non !| « Si ? »| Fin
El Sr. Gómez y la Sra. Pérez de EE.UU. llegaron.| ¿Sí?| ¡No!
А. С. Пушкин жил на ул. Мойка, т.е. в 1837 г. там.| Да.
That's how it is.| Ok, give it to me.| Then go.
„Hallo.“| ‚Gut.‘| »Ja.«| Nein.
你好。|今天天气很好！|是吗？！|“好。”|他说。
价格是3．14元，时间9：30。|好
नमस्ते।|कैसे हो।|ठीक॥|हाँ
كيف حالك؟|بخير، شكرا.| نعم۔|لا
សួស្តី។|မင်္ဂလာပါ။|ሰላም።|Ողջույն։|ok
**Bold.**| _So._| `x`.| Next
— Hello.| … yes!| 😀 Bye.| The end 👍
"""

CLAUSES = """
It was the best of times,| it was the worst of times,| it was the age of wisdom.
1,000 apples,| 2 pears;| done:| yes.
At 9:30,| go to https://a.example/x,y;z.| Ok
你好，|世界；|一、|二：|三。
1，000元，|9：30，|走。
بخير،|شكرا؛|نعم
"Well," |she said,| "no."
Dr. Who,| e.g. me,| etc.,| and so on.
(one, |two); |three
"""


def cases(table: str) -> list[str]:
    return table.strip().splitlines()


def fed(text: str, sizes: list[int], granularity: str) -> list[str]:
    """Segments of a text that arrives in pieces; the sizes are used round and round."""
    splitter = Splitter(granularity)
    out, at, turn = [], 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        out += splitter.feed(text[at : at + size])
        at, turn = at + size, turn + 1
    return out + splitter.flush()


@pytest.mark.parametrize("case", cases(SENTENCES))
def test_sentences_whole_and_character_by_character(case):
    wanted = [part.strip() for part in case.split("|")]
    assert split(case.replace("|", ""), "sentence") == wanted
    assert fed(case.replace("|", ""), [1], "sentence") == wanted


@pytest.mark.parametrize("case", cases(CLAUSES))
def test_clauses_whole_and_character_by_character(case):
    wanted = [part.strip() for part in case.split("|")]
    assert split(case.replace("|", ""), "clause") == wanted
    assert fed(case.replace("|", ""), [1], "clause") == wanted


@pytest.mark.parametrize("row", GOLDEN["same"], ids=lambda row: row["text"])
def test_agrees_with_the_server(row):
    assert split(row["text"], "sentence") == row["sentence"]
    assert split(row["text"], "clause") == row["clause"]


@pytest.mark.parametrize("row", GOLDEN["different"], ids=lambda row: row["reason"])
def test_differs_from_the_server_only_where_documented(row):
    assert split(row["text"], row["granularity"]) == row["ouzel"] != row["server"]


@pytest.mark.parametrize(
    "text", ["Hello.\nSecond line.\nThird.", "Hello\r\nSecond line\n\n\nThird", "Hello\u2028Second line\x85Third"]
)
def test_newlines_are_boundaries_and_nothing_after_them_is_lost(text):
    assert [s.rstrip(".") for s in split(text, "sentence")] == ["Hello", "Second line", "Third"]


def test_a_segment_comes_out_as_soon_as_it_is_certain():
    splitter = Splitter("sentence")
    assert splitter.feed("Hello there.") == []  # could still be "there.com"
    assert splitter.feed(" ") == ["Hello there."]
    assert splitter.feed("你好。") == []  # a closing quote may follow
    assert splitter.feed("”") == []
    assert splitter.feed("再") == ["你好。”"]
    assert splitter.feed("Line\n") == ["再Line"]
    assert splitter.feed("Dr. Who is No.") == []
    assert splitter.feed(" ") == []
    assert splitter.feed("5") == []
    assert splitter.flush() == ["Dr. Who is No. 5"]
    assert splitter.flush() == []


def test_granularity_none_waits_for_the_flush_and_can_be_used_again():
    splitter = Splitter("none")
    assert splitter.feed(" Hi. Yo.\n") == splitter.feed("Bye. ") == []
    assert splitter.flush() == ["Hi. Yo.\nBye."]
    assert splitter.flush() == []
    assert split(" Again. ", "none") == ["Again."]


def test_granularity_none_refuses_endless_text():
    splitter = Splitter("none")
    splitter.feed("x" * MAX_TEXT_CHARS)
    with pytest.raises(UsageError, match="granularity"):
        splitter.feed("x")


def test_unknown_granularity_names_the_choices():
    with pytest.raises(UsageError, match=r"'sentence'.*none, sentence, clause"):
        Splitter("sentense")


@pytest.mark.parametrize("granularity", ["none", "sentence", "clause"])
@pytest.mark.parametrize("text", ["", " ", "   \t\n  ", "…", "—", "...", "? ! .", "\n\n", "👍", '"', "***\n---"])
def test_text_without_speech_gives_no_segment(text, granularity):
    assert split(text, granularity) == []
    assert fed(text, [1], granularity) == []


@pytest.mark.parametrize(
    "unit", ["word ", "word, ", "字", "字、", "x", ". ", "… ", "Dr. ", " ", "«. ", '"', ".", "e\u0301", "3. "]
)
@pytest.mark.parametrize("granularity", ["sentence", "clause"])
def test_endless_input_without_boundary_is_held_up_to_the_soft_limit(unit, granularity):
    splitter = Splitter(granularity)
    out = []
    for _ in range(4 * SOFT_LIMIT // len(unit)):
        out += splitter.feed(unit)
        assert len(splitter._text) <= SOFT_LIMIT + len(unit)
    out += splitter.flush()
    assert all(len(segment) <= SOFT_LIMIT and speakable(segment) for segment in out)
    assert bool(out) == speakable(unit)


def test_soft_limit_prefers_a_clause_mark_then_a_space_and_keeps_characters_whole():
    assert split("word, " * 100 + "word " * 100, "sentence")[0].endswith("word,")
    first, second = split("w" * 900 + " " + "x" * 300, "sentence")
    assert (len(first), len(second)) == (900, 300)
    assert all(s[0] == "e" for s in split("e\u0301" * 700, "sentence"))


WORDS = 'Dr . ! ? … , : 3 14 a B No etc am he Mai " ” “ « ) 。 ， ： 你 、 । ؟ * 👍 é https://a.b/c'.split()
PIECES = [*WORDS, ". ", ", ", " ", "  ", " »", "\n"]
TEXTS = st.one_of(st.lists(st.sampled_from(PIECES), max_size=60).map("".join), st.text(max_size=80))


@given(TEXTS, st.lists(st.integers(1, 9), min_size=1, max_size=6), st.sampled_from(["none", "sentence", "clause"]))
@settings(max_examples=400)
def test_segments_do_not_depend_on_the_chunks(text, sizes, granularity):
    assert fed(text, sizes, granularity) == split(text, granularity)


@given(st.integers(0, 2**32), st.integers(1, 700), st.sampled_from(["sentence", "clause"]))
@settings(max_examples=30)
def test_segments_do_not_depend_on_the_chunks_beyond_the_soft_limit(seed, size, granularity):
    rare = random.Random(seed).choices(["a", " ", "Dr", ". ", ", ", "e\u0301", "你"], [50, 9, 9, 1, 0.1, 9, 9], k=4000)
    text = "".join(rare)
    assert fed(text, [size], granularity) == split(text, granularity)


@given(TEXTS, st.sampled_from(["none", "sentence", "clause"]))
@settings(max_examples=200)
def test_everything_speakable_is_kept_in_order(text, granularity):
    segments = split(text, granularity)
    assert [c for s in segments for c in s if c.isalnum()] == [c for c in text if c.isalnum()]
    assert all(s == s.strip() and speakable(s) for s in segments)
