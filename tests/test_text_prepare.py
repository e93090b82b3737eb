"""Empty, unspeakable and overlong text; the normaliser; what is warned about."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ouzel.errors import UsageError
from ouzel.text import MAX_TEXT_CHARS, normalize, prepare, speakable, unspeakable_characters


@pytest.mark.parametrize("text", ["", " ", "   \t\n  ", "\u3000\u2028"])
def test_empty_text_is_refused(text):
    with pytest.raises(UsageError, match="text is empty"):
        prepare(text)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("…", r"'…' \(HORIZONTAL ELLIPSIS\)"),
        (" — \n", r"'—' \(EM DASH\)"),
        ("👍👍!", r"'👍' \(THUMBS UP SIGN\), '!' \(EXCLAMATION MARK\)"),
        ("\x07", r"U\+0007"),
        ("\u200b", r"U\+200B \(ZERO WIDTH SPACE\)"),
        ("\u0301", r"U\+0301 \(COMBINING ACUTE ACCENT\)"),
        ("!?.,:;-", r"'!' .* and 2 more"),
    ],
)
def test_unspeakable_text_is_refused_and_says_what_it_holds(text, named):
    with pytest.raises(UsageError, match=rf"Nothing in the text can be spoken: it has only {named}"):
        prepare(text)


@pytest.mark.parametrize("text", ["![](picture1.png)", "[r]: https://a.example", "<img src=a.png>", "```python"])
def test_text_that_is_only_markup_is_refused_unless_stripping_is_off(text):
    with pytest.raises(UsageError, match="only markup"):
        prepare(text)
    assert prepare(text, strip=False).text == text


def test_overlong_text_is_refused_with_both_numbers():
    assert prepare("a" * MAX_TEXT_CHARS).text
    with pytest.raises(UsageError, match=r"100,001 characters; at most 100,000"):
        prepare("a" * (MAX_TEXT_CHARS + 1))
    with pytest.raises(UsageError, match=r"3 characters; at most 2"):
        prepare("abc", max_chars=2)


def test_half_a_surrogate_pair_is_mended_or_refused():
    assert prepare("Hi\ud83d there").text == "Hi there"
    with pytest.raises(UsageError, match="Unicode"):
        prepare("Hi\ud83d there", strip=False, normalise=False)


def test_a_prepared_text_is_plain_and_tidy():
    done = prepare("# Hello  there\r\n\r\n- **you** 👍\n- me\u00a0too ", language=None)
    assert done.text == "Hello there\nyou\nme too"
    assert done.warnings == ("Left out characters that cannot be spoken: '👍' (THUMBS UP SIGN).",)


def test_switches_leave_the_text_alone():
    text = "**Hello**  👍 \n"
    assert prepare(text, strip=False, normalise=False).text == text
    assert prepare(text, normalise=False).text == "Hello  \n"
    kept = prepare(text, strip=False)
    assert kept.text == "**Hello** 👍"
    assert kept.warnings == ("The text has characters that a voice may skip or misread: '👍' (THUMBS UP SIGN).",)


def test_ordinary_text_has_no_warnings():
    assert prepare("Café — “so” 20 °C, 5 % of $3; № 5 © me™. می‌خواهم").warnings == ()


@pytest.mark.parametrize("text", ["a", "7", "好", "ก", "हि", "ع", "한", "½", "²", "— x"])
def test_speakable(text):
    assert speakable(text)


@pytest.mark.parametrize("text", ["", "…", "—", "_", "👍", "\u0301", "© ™", "\n"])
def test_not_speakable(text):
    assert not speakable(text)


def test_unspeakable_characters_are_distinct_and_in_order():
    assert unspeakable_characters("b👍a👍\x07\n☎ ©°—\ue000") == ["👍", "\x07", "☎", "\ue000"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("cafe\u0301", "café"),
        ("a\u00a0b\u2009c\u3000d\u202fe\t f", "a b c d e f"),
        ("  a \r\n b\r\rc\u2028d\x85e\n\n\nf  ", "a\nb\nc\nd\ne\nf"),
        ("co\u00adop zero\u200bwidth \ufeffbom \u202ertl\u202c \u2066i\u2069", "coop zerowidth bom rtl i"),
        ("क्\u200dष می\u200cخواهم", "क्\u200dष می\u200cخواهم"),
        ("a\u200db\u200cc", "abc"),
        ("“Curly” ‘quotes’ don’t — change… 1,000.50 ＡＢＣ", "“Curly” ‘quotes’ don’t — change… 1,000.50 ＡＢＣ"),
        ("\x1b[1mbold\x1b[0m\x07 \ud800x\ue000", "bold x"),
    ],
)
def test_normalize(text, wanted):
    assert normalize(text) == wanted


@pytest.mark.parametrize("language", ["english", "English", "en", "en-US"])
def test_normalize_writes_english_out(language):
    assert normalize(" It costs\u00a0$5,\nDr. Brown. ", language) == "It costs five dollars, Doctor Brown."


def test_normalize_has_no_rules_for_other_languages_and_says_so():
    with pytest.raises(UsageError, match=r"'german'; give 'english'"):
        normalize("It costs $5.", "german")


def test_prepare_warns_of_what_has_no_english_reading():
    done = prepare("**Привет**, 5 km 👍", language="english")
    assert done.text == "five kilometers"
    assert done.warnings == (
        "Left out characters that cannot be spoken: '👍' (THUMBS UP SIGN), 'П' (CYRILLIC CAPITAL LETTER PE), "
        "'р' (CYRILLIC SMALL LETTER ER), 'и' (CYRILLIC SMALL LETTER I), 'в' (CYRILLIC SMALL LETTER VE) and 2 more.",
    )
    with pytest.raises(UsageError, match="Nothing in the text has an English reading: 'П'"):
        prepare("Привет", language="english")


@given(st.text(max_size=100))
def test_normalize_is_idempotent_canonical_and_keeps_letters(text):
    once = normalize(text)
    assert normalize(once) == once == unicodedata.normalize("NFC", once)
    wanted = [c for c in unicodedata.normalize("NFC", text) if c.isalnum()]
    assert [c for c in once if c.isalnum()] == wanted or "\x1b[" in text
