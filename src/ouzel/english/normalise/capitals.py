"""Words in capitals: initialisms spelled, word-like acronyms and shouting read; joined words (YouTube) parted."""

from __future__ import annotations

import re
from collections.abc import Callable

from .spelling import spelled
from .tables import table

Known = Callable[[str], bool]

# Read as words although no dictionary may have them.
_WORDLIKE = frozenset(
    """
nasa nato unesco unicef opec fifa ikea laser radar scuba aids covid ebola sars mers nafta nasdaq fema osha potus scotus swat
mensa gif jpeg ram rom pin sim lan wan gui dos basic cobol ascii gestapo interpol taser captcha lego fiat saab asean aukus
brics darpa uefa wasp yolo lol modem pascal fortran bios cad net
""".split()
)
# Spelled although they could be words.
_SPELLED = frozenset(
    """
usa uk eu uae fbi cia irs ai api abc aol atm bbc bmi bmw brb cbs cd ceo cfo cio cnn coo cpu cv dc diy dj dna dvd epa er esp est
eta ev faq fda gdp gmo gop gpa gps hiv html http https ibm icu imf io ios ip ipo iq isbn iso iud ivf lcd led lgbt mba mit mri
mvp nba nfl nhl nra nsa nyc nyu oecd oem pa pc pdf phd pr ptsd qa qr rpg rsvp sat seo sos suv tba tbd tv ucla ufc ufo un upc ups
url usb vhs vip vp vpn xml aka bc ad ce bce gmt utc pst edt cst cet rip rna ide sdk ui ux os ir uv em aa aaa eeg ecg ekg unhcr
esa rac raf iou ira mi sd nc va ca ny
""".split()
)
# Both: letters among ordinary words, words among shouted ones.
_EITHER = frozenset(
    "us it who am or in me is as at so we he be do go no on to up an my by if of la id hr ad er em pa ma ca mi".split()
)
_COMMON = frozenset(
    """
stop help not all the and but you are now very never always only this that what why how yes no please must do don't can't
won't out off new free sale love wow oh hey hi go one two three more most best big good bad here there have has had was were
will would can could should hello world attention warning danger note important exit open closed push pull do is it be to of
in on at my me we he she her his they them their our your us who when where which with from for so too just really really also
back down over under any some every no nothing something anything everything everyone nobody time day night man woman god life
home work let get got make made want need know think see look say said tell told ask come came take took give gave keep read
before after again ever still even much many few less than then as by if or an up am urgent total end start begin top
""".split()
)
_INTERJECTIONS = frozenset("hm hmm mm mmm sh shh psst pst brr brrr grr grrr pfft tsk zzz nth ssh th nd rd st".split())
_MIXED_CASE = table(
    "phd: P H D | msc: M S C | bsc: B S C | phds: P H D's | wifi: wifi | hifi: hifi | iphone: iphone | ipad: ipad"
)
_NAME_PREFIX = re.compile(r"(?:Ma?c|Fitz|D[ei]|Du|L[ea]|V[ao]n|[DO]')[A-Z][a-z]+")

_TOKEN = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)*|[.?!]")
_JOINT = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_VOWEL = re.compile("[aeiouy]")
_HARD = re.compile(r"[^aeiouy]{5}|^[^aeiouy]{4}|^(?!sch|scr|shr|spl|spr|str|thr|chr|phr)[^aeiouy]{3}|[aeiou]{4}")


def speak_capitals(text: str, known: Known | None) -> str:
    """What is spelled comes out as `spelling.spelled`, what is read as a word in small letters."""
    tokens = list(_TOKEN.finditer(text))
    shouted = _shouted(tokens, known)
    out, at = [], 0
    for i, found in enumerate(tokens):
        token = found.group()
        spoken = _speak(token, known, i in shouted)
        if spoken != token:
            out += [text[at : found.start()], spoken]
            at = found.end()
    return "".join([*out, text[at:]])


def _speak(token: str, known: Known | None, shouted: bool) -> str:
    if len(token) == 1:
        return "a" if shouted and token == "A" else token
    if token.islower():
        strange = 2 <= len(token) <= 5 and not _VOWEL.search(token) and token.isalpha() and token not in _INTERJECTIONS
        return spelled(token) if strange and not (known and known(token)) else token
    stem, ending = _ending(token)
    if stem.isupper() and len(stem) >= 2:
        if _is_word(stem.lower(), known, shouted):
            return token.lower()
        return spelled(stem) + ("'s" if ending else "")
    if token.isupper() or (token[0].isupper() and token[1:].islower()):
        return token.lower() if token.isupper() else token
    return _parted(token, known)


def _ending(token: str) -> tuple[str, str]:
    """The capitals of a token and its plural or possessive s: FBI's, DVDs."""
    for ending in ("'s", "'S", "s"):
        stem = token.removesuffix(ending)
        if stem != token and len(stem) >= 2 and stem.isupper() and stem.isalpha():
            return stem, ending
    return token, ""


def _is_word(word: str, known: Known | None, shouted: bool) -> bool:
    if word in _WORDLIKE:
        return True
    if "'" in word:
        return bool(_VOWEL.search(word))
    if shouted and word in _EITHER:
        return True
    if word in _SPELLED or word in ("us", "it", "who", "am", "id", "la", "hr"):
        return False
    if not _VOWEL.search(word):
        return word in _INTERJECTIONS
    if word in _COMMON or word in _EITHER or (known is not None and known(word)):
        return True
    return not _HARD.search(word) and (shouted or len(word) > (5 if known else 4))


def _shouted(tokens: list[re.Match[str]], known: Known | None) -> set[int]:
    """Tokens of runs of capitals in which most are ordinary words. "I" and "A" belong to a run, and so do marks inside it."""
    shouted: set[int] = set()
    run: list[int] = []
    for i in range(len(tokens) + 1):
        token = tokens[i].group() if i < len(tokens) else "end"
        if token.isupper() or not token[0].isalpha():
            run.append(i)
            continue
        words = [
            tokens[j].group().lower()
            for j in run
            if tokens[j].group()[0].isalpha() and (len(tokens[j].group()) > 1 or _leads(tokens, j, run))
        ]
        ordinary = sum(_is_word(word, known, True) and word not in _WORDLIKE for word in words)
        if len(words) >= 2 and 2 * ordinary > len(words):
            # An A at the end or before a mark is a letter: "PLAN A."
            shouted.update(j for j in run if len(tokens[j].group()) > 1 or _leads(tokens, j, run))
        run = []
    return shouted


def _leads(tokens: list[re.Match[str]], j: int, run: list[int]) -> bool:
    """True for a single letter right before a word in capitals: "I AM", "A TEST"."""
    return j < run[-1] and len(tokens[j + 1].group()) > 1


def _parted(token: str, known: Known | None) -> str:
    """YouTube is two words, OpenAI one and two letters, McDonald one, sPoNgE a joke."""
    low = token.lower()
    if low in _MIXED_CASE:
        return _MIXED_CASE[low]
    if _NAME_PREFIX.fullmatch(token) or (known is not None and known(low)):
        return token
    parts = _JOINT.split(token)
    if len(parts) >= 4 and len(token) < 3 * len(parts):
        return low
    return " ".join(_part(part, known) for part in parts)


def _part(part: str, known: Known | None) -> str:
    if len(part) == 1:
        return spelled(part) if part not in "aA" else part
    return _speak(part.strip("'") or part, known, False) if part.isupper() else part
