"""Words made of known words: endings, beginnings, British spellings, compounds.

What is here says held-out words of the dictionary better than letters to sounds do; -y, -ish, re-, de-, dis- did not.

Every function takes `known`, which gives the phones of a word or None, and gives phones or None itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

Phones = tuple[str, ...]
Known = Callable[[str], Phones | None]

_SIBILANTS = frozenset(("S", "Z", "SH", "ZH", "CH", "JH"))
_VOICELESS = frozenset(("P", "T", "K", "F", "TH"))
_VOWELS = frozenset("aeiouy")
_CONTRACTIONS = {"ll": "AH0 L", "ve": "AH0 V", "re": "ER0", "d": "AH0 D", "m": "AH0 M"}
_AFTER_VOWEL = {"ll": "L", "ve": "V", "re": "R", "d": "D", "m": "M"}


def plural(stem: Phones) -> Phones:
    """The stem with the s of cats, dogs or horses."""
    if stem[-1] in _SIBILANTS:
        return (*stem, "AH0", "Z")
    return (*stem, "S" if stem[-1] in _VOICELESS else "Z")


def past(stem: Phones) -> Phones:
    """The stem with the ed of walked, called or wanted."""
    if stem[-1] in ("T", "D"):
        return (*stem, "IH0", "D")
    return (*stem, "T" if stem[-1] in _VOICELESS or stem[-1] in ("S", "SH", "CH") else "D")


def _adding(text: str) -> Callable[[Phones], Phones]:
    phones = tuple(text.split())
    return lambda stem: (*stem, *phones)


def _after_le(text: str) -> Callable[[Phones], Phones]:
    """handle, handling: the schwa before the l goes."""
    phones = tuple(text.split())
    return lambda stem: (*(stem[:-2] + stem[-1:] if stem[-2:] == ("AH0", "L") else stem), *phones)


def _adverb(stem: Phones) -> Phones:
    return (*(stem[:-1] if stem[-1] == "L" else stem), "L", "IY0")


def contracted(word: str, known: Known) -> Phones | None:
    """it's, dogs', they'll, who've, mightn't, y'all: what stands on both sides of an apostrophe."""
    stem, _, ending = word.rpartition("'")
    if not stem:
        return known(ending) if ending else None
    if ending in ("t", "T") and stem.endswith("n") and (found := known(stem[:-1])):
        return (*found, "AH0", "N", "T")
    if not (found := known(stem)):
        return None
    if not ending:
        return found
    if ending == "s":
        return plural(found)
    if ending in _CONTRACTIONS:
        after_vowel = found[-1][-1].isdigit() or (ending == "d" and found[-1] not in ("T", "D"))
        return (*found, *(_AFTER_VOWEL if after_vowel else _CONTRACTIONS)[ending].split())
    rest = known(ending)
    return (*found, *rest) if rest else None


def _stems(stem: str) -> Iterator[str]:
    """Spellings that `stem` may have had before an ending that begins with a vowel: runn run, bak bake, carri carry."""
    if len(stem) < 2:
        return
    double = stem[-1] == stem[-2] and stem[-1] not in _VOWELS
    if stem[-1] == "i":
        yield stem[:-1] + "y"
        return
    if double and stem[-1] not in "lsfz":
        yield stem[:-1]
    short = len(stem) >= 3 and stem[-1] not in "aeiouywx" and stem[-2] in _VOWELS and stem[-3] not in _VOWELS
    if short:
        yield stem + "e"
    yield stem
    if not short:
        yield stem + "e"
    if double and stem[-1] in "lsfz":
        yield stem[:-1]


def _same(stem: str) -> Iterator[str]:
    yield stem
    if stem.endswith("i"):
        yield stem[:-1] + "y"


def _plus(text: str) -> Callable[[str], Iterator[str]]:
    return lambda stem: iter((stem + text,))


_ENDINGS: tuple[tuple[str, Callable[[str], Iterator[str]], Callable[[Phones], Phones]], ...] = (
    ("lings", _plus("le"), _after_le("IH0 NG Z")),
    ("ling", _plus("le"), _after_le("IH0 NG")),
    ("lers", _plus("le"), _after_le("ER0 Z")),
    ("ler", _plus("le"), _after_le("ER0")),
    ("ly", _plus("le"), _after_le("IY0")),
    ("ings", _stems, _adding("IH0 NG Z")),
    ("ing", _stems, _adding("IH0 NG")),
    ("ed", _stems, past),
    ("ers", _stems, _adding("ER0 Z")),
    ("er", _stems, _adding("ER0")),
    ("est", _stems, _adding("AH0 S T")),
    ("ily", _stems, _adding("AH0 L IY0")),
    ("ically", _plus("ic"), _adding("L IY0")),
    ("ly", _same, _adverb),
    ("ness", _same, _adding("N AH0 S")),
    ("less", _same, _adding("L AH0 S")),
    ("ful", _same, _adding("F AH0 L")),
    ("ment", _same, _adding("M AH0 N T")),
    ("able", _stems, _adding("AH0 B AH0 L")),
    ("ship", _same, _adding("SH IH2 P")),
    ("ism", _stems, _adding("IH2 Z AH0 M")),
    ("ist", _stems, _adding("IH0 S T")),
    ("like", _same, _adding("L AY2 K")),
    ("hood", _same, _adding("HH UH2 D")),
)
_BEGINNINGS_TABLE = """
anti AE2 N T IY0|auto AO2 T OW0|bio B AY2 OW0|cyber S AY2 B ER0|hyper HH AY2 P ER0|inter IH2 N T ER0|mega M EH2 G AH0
micro M AY2 K R OW0|multi M AH2 L T IY0|nano N AE2 N OW0|neuro N UH2 R OW0|non N AA2 N|over OW2 V ER0|photo F OW2 T OW0
pre P R IY0|semi S EH2 M IY0|super S UW2 P ER0|tele T EH2 L AH0|ultra AH2 L T R AH0|un AH0 N
"""
_BEGINNINGS = {
    beginning: tuple(phones.split())
    for beginning, _, phones in (entry.partition(" ") for entry in _BEGINNINGS_TABLE.strip().replace("\n", "|").split("|"))
}
_SHORTEST_STEM = 3


def inflected(word: str, known: Known, ordinary: Known) -> Phones | None:
    """A known word with an s, or an ordinary word with another ending."""
    if word.endswith("s") and not word.endswith(("ss", "us")) and len(word) > _SHORTEST_STEM:
        stems = [word[:-3] + "y"] if word.endswith("ies") else []
        stems += [word[:-1]] + ([word[:-2]] if word.endswith(("ches", "shes", "xes", "sses", "zes", "oes")) else [])
        for stem in stems:
            if found := known(stem):
                return plural(found)
    for ending, stems_of, add in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            for stem in stems_of(word[: -len(ending)]):
                if found := ordinary(stem):
                    return add(found)
    return None


def prefixed(word: str, known: Known) -> Phones | None:
    """A known word after un, over, micro …"""
    for size in (7, 5, 4, 3, 2):
        if (beginning := _BEGINNINGS.get(word[:size])) and len(word) - size >= 4 and (found := known(word[size:])):
            return (*beginning, *found)
    return None


_BRITISH_TABLE = """isation ization|ise ize|ising izing|iser izer|yse yze|ysing yzing|our or|lled led|lling ling|ller ler
tre ter|ence ense|ogue og|aed ed|aem em|aes es|oed ed|oeo eo|oest est"""
_BRITISH = tuple(tuple(pair.split()) for pair in _BRITISH_TABLE.replace("\n", "|").split("|"))


def respelt(word: str, known: Known) -> Phones | None:
    """A British spelling of a word known in the American one: colour, organise, centre."""
    for british, american in _BRITISH:
        at = word.rfind(british)
        if at >= 0 and (found := known(word[:at] + american + word[at + len(british) :])):
            return found
    return None


_SHORT = """
air all any arm art bad bag bar bed bee big box boy bus bug car cat cow cup cut day dog dry ear egg eye fan far fat fly
fun gas gun hat hot ice jet job key kid lap leg lip low man map may mid net new nut off oil old one out owl own pad pan
pay pea pen pet pie pig pin pop pot raw red run saw sea set sky sub sun tap tax tea tie tin tip toe top toy two war wax
way web wet zip
"""
_SHORT_PARTS = frozenset(_SHORT.split())
_NO_SECOND_TEXT = """
able ably age ally ant ate ation berg burg field ford ful ion king land ling man men ment less port some son stein tion ties ting
ton town ville wood worth
"""
_NO_SECOND = frozenset(_NO_SECOND_TEXT.split())
"""Ends of names and endings, said otherwise than the word of that spelling."""
_LONGEST_COMPOUND = 24


def compound(word: str, known: Known) -> Phones | None:
    """Two known words in one, the most balanced pair; the stress of the second becomes secondary."""
    if len(word) > _LONGEST_COMPOUND:
        return None
    middle = len(word) / 2
    for at in sorted(range(3, len(word) - 2), key=lambda at: (abs(at - middle), at)):
        parts = word[:at], word[at:]
        if (
            parts[0] in _BEGINNINGS
            or parts[1] in _NO_SECOND
            or any(len(part) == 3 and part not in _SHORT_PARTS for part in parts)
        ):
            continue
        if word[at] == "h" and word[at - 1] in "cpst":  # one sound, as in "lightships"
            continue
        if (first := known(parts[0])) and (second := known(parts[1])):
            rest = tuple(phone.replace("1", "2") for phone in second)
            return first + rest[first[-1] == rest[0] :]  # "filmmaker" has one m
    return None
