"""Written English to spoken English: words, names, marks, addresses and what cannot be said."""

from pathlib import Path

import pytest

from ouzel.english import spoken_form
from ouzel.english.normalise import Spoken, normalise

HELD_OUT = Path(__file__).parents[1] / "training" / "voice" / "sentences" / "numbers.txt"


def cases(text):
    return [pytest.param(*line.rsplit(" -> ", 1), id=line.rsplit(" -> ", 1)[0]) for line in text.strip().splitlines()]


def listened(text):
    """The words in small letters, without marks: what a listener writes down."""
    return " ".join("".join(c if c.isalpha() or c == "'" else " " for c in text.lower()).split())


HEARD = [line.partition("|") for line in HELD_OUT.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]


@pytest.mark.parametrize(("text", "words"), [(text, words) for text, _, words in HEARD])
def test_held_out_sentences_as_a_listener_writes_them(text, words):
    assert listened(normalise(text).text) == words


WORDS_AND_MARKS = """
The kettle is on, so tea will be ready in a moment. -> The kettle is on, so tea will be ready in a moment.
A dog barked. -> a dog barked.
Don’t “quote” me — please… -> Don't quote me, please.
Wait... what? -> Wait, what?
Wait... What? -> Wait. What?
Really?! Yes!!! -> Really? Yes!
It rained (a lot), then stopped. -> It rained, a lot, then stopped.
(like this) -> like this
the word(s) -> the words
one -- two - three -> one, two, three
twenty-one well-known words -> twenty one well known words
a list: first; second -> a list: first; second
rock 'n' roll -> rock and roll
the dogs' bowls, 'tis so -> the dogs bowls, tis so
café naïve Zürich Straße Dvořák Øresund -> cafe naive Zurich Strasse Dvorak Oresund
ＡＢＣ ﬁne -> A B C fine
sooooo goooood -> soo good
¿Qué? -> Que?
**bold**, `code` and ~~gone~~ -> bold, code and gone
<b>tag</b> a -> b -> tag a to b
snake_case -> snake case
foo() returns [] -> foo, returns
hello :-) there -> hello there
"""


@pytest.mark.parametrize(("text", "wanted"), cases(WORDS_AND_MARKS))
def test_words_and_marks(text, wanted):
    assert normalise(text).text == wanted


ABBREVIATIONS = """
Dr. Brown and Dr Who -> Doctor Brown and Doctor Who
Mr. and Mrs. Smith met Ms. Lee. -> Mister and Missus Smith met Ms Lee.
Prof. Lee, Sen. Sanders, Lt. Col. John -> Professor Lee, Senator Sanders, Lieutenant Colonel John
Good night, Mrs. -> Good night, Missus.
St. Mary on Oak St. in spring -> Saint Mary on Oak Street in spring
Oak St. He left. -> Oak Street. He left.
Ocean Dr. -> Ocean Drive.
Visit St. Paul -> Visit Saint Paul
apples, pears, etc. -> apples, pears, et cetera.
apples etc. He ate. -> apples et cetera. He ate.
pears, etc., too -> pears, et cetera, too
cats vs. dogs -> cats versus dogs
e.g. apples, i.e. fruit -> for example apples, that is fruit
(e.g., that) -> for example, that
Martin Luther King Jr. said -> Martin Luther King Junior said
Apple Inc. announced -> Apple Incorporated announced
Smith & Co. is big -> Smith and Company is big
Smith et al. -> Smith et al.
J. R. R. Tolkien -> J R R Tolkien
J.R.R. Tolkien -> J R R Tolkien
George W. Bush -> George W Bush
by J. Smith -> by J Smith
Plan B. Then go. -> Plan B. Then go.
vitamin C. Then -> vitamin C. Then
You and I. We go. -> You and I. We go.
the U.S. Army -> the U S Army
in the U.S. He left -> in the U S. He left
the U.K. and D.C. -> the U K and D C.
a Ph.D. student -> a P H D student
a.k.a. Bob -> A K A Bob
Feb. and Sept. are short -> February and September are short
Mon-Fri, Jan-Mar -> Monday to Friday, January to March
No. I won't. -> No. I won't.
Is it OK? O.K. -> Is it okay? okay.
"""


@pytest.mark.parametrize(("text", "wanted"), cases(ABBREVIATIONS))
def test_abbreviations(text, wanted):
    assert normalise(text).text == wanted


CAPITALS = """
The FBI and the BBC -> The F B I and the B B C
the CEO's car and two DVDs -> the C E O's car and two D V D's
NASA, NATO and UNESCO -> nasa, nato and unesco
HELLO WORLD -> hello world
THIS IS A TEST. -> this is a test.
JOIN US NOW -> join us now
I AM HERE -> I am here
FBI HELP -> F B I help
PLAN A -> P L A N A
STOP! This is VERY important. -> stop! This is very important.
I saw the US team. -> I saw the U S team.
the WHO said -> the W H O said
the IT department -> the I T department
USA! USA! -> U S A! U S A!
BMW, HTML, UNHCR -> B M W, H T M L, U N H C R
the tv -> the T V
McDonald, MacDonald, O'Neil -> McDonald, MacDonald, O'Neil
YouTube, OpenAI and macOS -> You Tube, Open A I and mac O S
eBay on an iPad with WiFi -> E Bay on an ipad with wifi
XMLParser -> X M L Parser
a PhD -> a P H D
sPoNgEbOb -> spongebob
"""


@pytest.mark.parametrize(("text", "wanted"), cases(CAPITALS))
def test_capitals(text, wanted):
    assert normalise(text).text == wanted


LETTER_A = """
ABC is a channel -> A B C is a channel
Use plan A today. -> Use plan A today.
Vitamin A Tablets -> Vitamin A' Tablets
Once Upon A Time -> Once Upon a Time
He got an A. -> He got an A.
'A' is a letter -> A' is a letter
Type A blood -> Type A blood
"""


@pytest.mark.parametrize(("text", "wanted"), cases(LETTER_A))
def test_letter_a(text, wanted):
    assert normalise(text).text == wanted


ROMANS = """
Henry VIII's wives -> Henry the eighth's wives
World War II and World War I -> World War two and World War one
Elizabeth II was crowned -> Elizabeth the second was crowned
Charles I was beheaded -> Charles the first was beheaded
Mary I think -> Mary I think
Chapter IV, Part V -> Chapter four, Part five
King George VI. -> King George the sixth.
Louis XIV and Final Fantasy VII -> Louis the fourteenth and Final Fantasy seven
Super Bowl LVIII -> Super Bowl fifty eight
the XXI century -> the twenty first century
Malcolm X -> Malcolm X
IV drip -> I V drip
XL size -> X L size
"""


@pytest.mark.parametrize(("text", "wanted"), cases(ROMANS))
def test_romans(text, wanted):
    assert normalise(text).text == wanted


ADDRESSES_AND_SYMBOLS = """
https://www.example.com/path/page?id=x -> W W W dot example dot com slash path slash page question mark id equals X
Visit example.com. -> Visit example dot com.
(see www.bbc.co.uk) -> see W W W dot B B C dot co dot U K
john.smith@example.com -> john dot smith at example dot com
Node.js and report.pdf -> Node dot J S and report dot P D F
.NET code -> dot net code
C++ and C# -> C plus plus and C sharp
#GoodVibes @alice -> hashtag Good Vibes at alice
AT&T R&D -> A T and T R and D
Tom & Jerry -> Tom and Jerry
and/or he/she w/o it n/a -> and or he or she without it N A
a = b + c -> a equals b plus c
x > y < z -> x greater than y less than z
a == b && c -> a equals b and c
10 ° -> ten degrees
/usr/bin -> slash usr slash bin
100% -> one hundred percent
E = mc² -> E equals M C squared
$ and € -> dollar and euro
© Acme™ -> copyright Acme trademark
===== line ===== -> line
α and π -> alpha and pi
"""


@pytest.mark.parametrize(("text", "wanted"), cases(ADDRESSES_AND_SYMBOLS))
def test_addresses_and_symbols(text, wanted):
    assert normalise(text).text == wanted


SENTENCES = (Path(__file__).parent / "golden" / "english_spoken.txt").read_text(encoding="utf-8").partition("\n")[2]


@pytest.mark.parametrize(("text", "wanted"), cases(SENTENCES))
def test_sentences(text, wanted):
    assert normalise(text).text == wanted


def test_line_breaks_end_sentences():
    assert (
        normalise("first line\nsecond line\r\n\r\nthe end.\nNext,\nplease").text
        == "first line. second line. the end. Next, please"
    )


# What the lexicon knows decides about capitals.
LEXICON = frozenset("plan mix it openai html fbi the unlikely now qwxyz".split())


@pytest.mark.parametrize(
    ("text", "alone", "wanted"),
    [
        ("PLAN it", "P L A N it", "plan it"),
        ("MIX it", "M I X it", "mix it"),
        ("OpenAI", "Open A I", "OpenAI"),
        ("the html", "the H T M L", "the html"),
        ("the FBI", "the F B I", "the F B I"),
        ("TEACUPS", "teacups", "teacups"),
        ("ABUJA", "abuja", "A B U J A"),
    ],
)
def test_a_lexicon_decides_what_is_read(text, alone, wanted):
    assert normalise(text).text == alone
    assert normalise(text, LEXICON.__contains__).text == wanted


@pytest.mark.parametrize(
    ("text", "spoken", "unspeakable"),
    [
        ("Hello 👍 world 🎉👍", "Hello world", "👍🎉"),
        ("Привет, world", "world", "Привет"),
        ("日本 is 日本", "is", "日本"),
        ("👍", "", "👍"),
        ("… — !", "", ""),
        ("", "", ""),
        ("\x00\x07\u200b\ufeff\ud800", "", ""),
        ("cafe\u0301 1\ufe0f\u20e3", "cafe one", ""),
        ("№ 5, ½, ٣, ①, 20℃", "number five, one half, three, one, twenty degrees Celsius", ""),
    ],
)
def test_what_cannot_be_said_is_listed_in_order(text, spoken, unspeakable):
    assert normalise(text) == Spoken(spoken, tuple(unspeakable))


def test_very_long_words_are_cut():
    text = normalise("ab" * 5000 + " " + "a'" * 400 + "b").text
    assert max(map(len, text.split())) <= 30


def test_letters_reach_the_lexicon_as_letters():
    """What is spelled here is said by name there; articles and the word I stay weak."""

    def form(text):
        return " ".join(spoken_form(normalise(text).text, lambda word: (word.upper(),)))

    assert form("The FBI.").endswith("EH1 F   B IY1   AY1 .")
    assert form("A4 paper").startswith("EY1   FOUR")
    assert form("A dog and I ran.").startswith("AH0   DOG   AE0 N D   AY2   RAN")
    assert form("Plan A is an AI plan").startswith("PLAN   EY1   IH0 Z   AH0 N   EY1   AY1   PLAN")
    assert form("Once Upon A Time") == "ONCE   UPON   AH0   TIME"
