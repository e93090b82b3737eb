"""Markdown, HTML and emoji go; ordinary text stays; adversarial text takes linear work."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouzel.text import speakable, strip_markup

ORDINARY = """
2 * 3 * 4 = 24, 2*3*4, 2**8, a ** b, 5* hotel, x*y*z, 3 *4
snake_case, _private, x_1 and y_2, ____ blank, foo__bar
a < b and c > d, 1 <2, x<y>z, List<int>, a <b and c> d, <3, <name>, ->, =>, >=5
C#, #1, #hashtag, F# minor, C♯, № 5, 20 °C, 50 %, © 2024, ™, → right, ≠, ½, ❶
[sic], [1, 2], f[0](y), m[0][1], array[i], (a), {b}, [Tom]: hello there, [^abc]
~5 km, ~/bin, a ~ b, AT&T, R&D, Q&A; really, &c, 5'10", C:\\Users\\me, 1/2, either/or
|x| + |y| = 3, a | b, a || b, 1 - 2, -5, +49 30 1234, — So, – 3
http://a.example/_x_/c*d*?a=1&copy=2#y, www.a.example/__b__, first_last@a.example
1. First, 2) second, a) third, v1.0.0 ... and so on
Price: $5, €7.50, ¥300, £2; 3 × 4 ÷ 2
Он сказал: «Да». 他说：“好。” क्‍ष می‌خواهم ไทย 한국어
:-) ;) :D <3
"""

MARKUP = [
    ("# Title C#\n## Sub ##\n###### Six\ntext", "Title C#\nSub\nSix\ntext"),
    ("Title\n=====\nSub\n---\ntext\n***\n* * *\nend", "Title\nSub\ntext\nend"),
    ("**Bold** *it* ***both*** __u__ _i_ ~~gone~~ **a *b* c**", "Bold it both u i gone a b c"),
    ('**bold**text, *a*, (*b*) "_c_"', 'boldtext, a, (b) "c"'),
    ("这是**重点**内容，**注意**：好", "这是重点内容，注意：好"),
    ("`co*d*e` and ``a`b`` and ```x``` and `lone", "co*d*e and a`b and x and lone"),
    ("\\*not\\* \\_x\\_ \\# \\[y\\](z)", "*not* _x_ # [y](z)"),
    ("```python\nx = a*b*c  # **no**\n```\n**after**", "x = a*b*c  # **no**\nafter"),
    ("~~~\n```\n*a*\n~~~\n*b*", "```\n*a*\nb"),
    ("```\nunclosed *a*", "unclosed a"),
    (
        "[link](http://x.example/z_(w) \"t\") and [two][r], [r], [three]( /x )\n\n[r]: https://x.example 'T'",
        "link and two, r, three\n",
    ),
    ("![alt](i.png) ![](j.png) [![badge](a.png)](http://b.example) [a [b] c](d)", "alt  badge a [b] c"),
    ("<https://z.example> <me@x.example> **https://a.example/b**", "https://z.example me@x.example https://a.example/b"),
    (
        "- one\n* two\n+ three\n• four\n  - nested\n- [x] done\n- [ ] open\n1. five",
        "one\ntwo\nthree\nfour\nnested\ndone\nopen\n1. five",
    ),
    ("> quoted\n>> twice\n> > thrice\n>5 stays", "quoted\ntwice\nthrice\n>5 stays"),
    ("| a | b |\n|---|:-:|\n| 1 | **2** |\nend", "a, b\n1, 2\nend"),
    ("a | b\n--|--\nc |\n\nd | e", "a, b\nc\n\nd | e"),
    ("| lone | row \\| here |", "lone, row | here"),
    ("<p>Hi <b>you</b></p><br/>x<a href='y'>l</a> <!-- no\nno --> <IMG SRC=x> z", "\nHi you\n\nxl   z"),
    ("<td>a</td><td>b</td> 5 &lt; 6 &amp; 7 &#65;&#x42; &nosuch;", " a  b  5 < 6 & 7 AB &nosuch;"),
    ("text[^1] more[^2].\n[^1]: Note", "text more.\nNote"),
    ("Great 👍! Hi😀there 👨‍👩‍👧 family 🇩🇪 1️⃣ #️⃣ ☎️ ❤️ ↔️ 👋🏽", "Great! Hi there family 1 #"),
    ("👍 👍 Hi 👍 👍\n🎉 Next 🎉", "Hi\nNext"),
    ("a\x00b\x07 \x1b[31mred\x1b[0m \ud83d \ue000 \r\nc", "ab red  \nc".replace("red  ", "red   ")),
    # Halves, as the splitter leaves them when it gets marked-up text as a stream.
    ("**Hello.", "Hello."),
    ("World.**", "World."),
    ("*Hello.", "Hello."),
    ("end.*", "end."),
    ("~~No.", "No."),
    ("```python", ""),
]


@pytest.mark.parametrize("text", ORDINARY.strip().splitlines())
def test_ordinary_text_stays(text):
    assert strip_markup(text) == text


@pytest.mark.parametrize(("text", "plain"), MARKUP)
def test_markup_goes(text, plain):
    assert strip_markup(text) == plain


def test_paragraphs_and_spacing_stay():
    text = "One  two.\n\n\nThree\tfour.\n    five"
    assert strip_markup(text) == text


@given(st.text(alphabet=st.characters(categories=["L", "N"], include_characters=" .,;!?'\n"), max_size=200))
def test_text_of_words_is_unchanged(text):
    assert strip_markup(text) == text


@given(st.text(alphabet="a1 *_~`#>-+|[]()!<&;:/=\\\n😀\u200d\ufe0f\"'^.", max_size=120))
def test_any_mixture_keeps_the_letters_outside_of_tags_and_targets(text):
    plain = strip_markup(text)
    assert set(plain) <= set(text) | set(" \n,&<>")
    if not set("[<&`~") & set(text):
        assert plain.count("a") == text.count("a")
        assert speakable(plain) == speakable(text)


def lines_run(text: str) -> int:
    """Lines of Python that strip_markup executes: a measure of work that knows no clock."""
    count = 0

    def tracer(frame, event, arg):
        nonlocal count
        count += 1
        return tracer if "ouzel" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        strip_markup(text)
    finally:
        sys.settrace(before)
    return count


# PATTERNS could make a regular expression backtrack, which no count of Python lines would show.
PATTERNS = [
    "[a](",
    "](((",
    '](a "',
    "<b ",
    "</",
    "<!--",
    "&#1",
    "http://a_",
    "<a@",
    "\x1b[1",
    " ",
    "[a]: ",
    "`",
    "*a",
    "[",
    "#",
    "😀\u200d",
]
LOOPS = [
    "*",
    "a*",
    "*a ",
    "_a_",
    "**a ",
    "~~a",
    "]",
    "![",
    "](",
    "[a][",
    "[^1]",
    "<",
    "`` ` ",
    "\\*",
    ">",
    "> ",
    "|",
    "a|b\n-|-\n",
    "-|-\n",
]
LINES = [
    "# ",
    "\n",
    "```\n",
    "```\n~~~~\n",
    "- ",
    "- - x\n",
    "😀 ",
    "[a]: http://x\n",
    "\r",
    "=",
    "- [x]\n",
    "(",
    "(a)[b](c)",
    "&a",
    "www.",
]


@pytest.mark.parametrize("unit", [*PATTERNS, *LOOPS, *LINES])
def test_work_grows_linearly_with_adversarial_text(unit):
    small, large = (lines_run(unit * (size // len(unit))) for size in (600, 2_400))
    assert large <= 4.5 * small + 200


@pytest.mark.parametrize("unit", PATTERNS)
def test_adversarial_text_of_100_kb_ends(unit):
    """A pattern that backtracks would stay here for minutes to years; there is nothing to measure."""
    assert len(strip_markup(unit * (100_000 // len(unit)))) <= 100_000
