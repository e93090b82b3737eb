"""Words of a text as a listener would count them, so that spelling, figures and punctuation cost nothing in a word error rate.

Errors and alignment are jiwer's (Levenshtein distance over words). Before that, both sides are made alike: "109", "one hundred
nine" and "one hundred and nine" are the same words, and so are "seashells" and "sea shells". Where a figure has several readings,
the one nearest to the other side counts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .figures import FIGURE, MONTHS, NUMBER_WORDS, Reading, readings

_SAME = {
    "mr": "mister", "mrs": "missus", "misses": "missus", "ms": "miss", "dr": "doctor", "prof": "professor", "ok": "okay",
    "vs": "versus", "alright": "all right", "cannot": "can not", "thru": "through", "til": "until", "lbs": "pounds",
    "lb": "pound", "gray": "grey", "theater": "theatre", "center": "centre", "centers": "centres", "meter": "metre",
    "meters": "metres", "kilometer": "kilometre", "kilometers": "kilometres", "centimeter": "centimetre",
    "centimeters": "centimetres", "liter": "litre", "liters": "litres",
    "color": "colour", "colors": "colours", "colored": "coloured", "favorite": "favourite",
    "neighbor": "neighbour", "neighbors": "neighbours", "neighborhood": "neighbourhood", "harbor": "harbour", "honor": "honour",
    "labor": "labour", "flavor": "flavour", "humor": "humour", "rumor": "rumour", "behavior": "behaviour", "program": "programme",
    "programs": "programmes", "catalog": "catalogue", "dialog": "dialogue", "traveling": "travelling", "traveled": "travelled",
    "traveler": "traveller", "canceled": "cancelled", "canceling": "cancelling", "jewelry": "jewellery", "plow": "plough",
    "tire": "tyre", "tires": "tyres", "check": "cheque", "checks": "cheques", "defense": "defence", "offense": "offence",
    "license": "licence", "practise": "practice", "pajamas": "pyjamas", "skeptical": "sceptical", "draft": "draught",
    "mold": "mould", "whiskey": "whisky", "donut": "doughnut", "o'clock": "oclock", "jan": "january", "feb": "february",
    "aug": "august", "sept": "september", "oct": "october", "nov": "november", "dec": "december",
}  # fmt: skip
_EITHER = {"st": (("street",), ("saint",)), "ave": (("avenue",),)}
_SIGNS = {"%": " percent ", "°": " degrees ", "&": " and ", "+": " plus ", "=": " equals ", "#": " number ", "@": " at "}
_TOKEN = re.compile(rf"{FIGURE.pattern}|(?P<word>[a-z]+(?:'[a-z]+)*)")
_AFTER = frozenset([*NUMBER_WORDS - {"oh"}, "dollars", "dollar", "pounds", "pound", "euros", "euro"])
_MAX_ROUNDS = 3


def slots(text: str) -> list[list[Reading]]:
    """Each word or figure of a text with its readings."""
    text = unicodedata.normalize("NFKC", text).lower().replace("’", "'").replace("‘", "'").replace("per cent", "percent")
    text = re.sub(r"\b([ap])\.? ?m\b\.?", r" \1m ", text)
    text = re.sub(r"\b((?:[a-z]\.){2,})", lambda found: " " + found[0].replace(".", " "), text)  # "F.B.I."
    for sign, word in _SIGNS.items():
        text = text.replace(sign, word)
    out: list[list[Reading]] = []
    before = ""
    for found in _TOKEN.finditer(text):
        word = found["word"]
        if word is None:
            out.append(readings(found, after_month=before in MONTHS))
        elif word in _EITHER:
            out.append(list(_EITHER[word]))
        else:
            out.append([tuple(_SAME.get(word, word).replace("'", "").split())])
        before = word or ""
    return out


def join(chosen: Sequence[Reading]) -> list[str]:
    """One list of words: no "and" inside numbers, single letters in a row as one word, "a hundred" as "one hundred"."""
    words = [word for reading in chosen for word in reading]
    out: list[str] = []
    spelling = False
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else ""
        if word == "and" and out and out[-1] in _AFTER and following in NUMBER_WORDS:
            continue
        if word == "a" and following in ("hundred", "thousand", "million"):
            word = "one"
        if len(word) == 1 and spelling:
            out[-1] += word
            continue
        # "i" and "a" are words: they begin no abbreviation unless a real letter follows.
        spelling = len(word) == 1 and (word not in "ai" or (len(following) == 1 and following not in "ai"))
        out.append(word)
    return out


def words(text: str) -> list[str]:
    """The words of a text in their likeliest reading."""
    return join([alternatives[0] for alternatives in slots(text)])


@dataclass(frozen=True)
class Score:
    """errors: substituted, dropped and added words; words: of the reference.

    ops: (kind, reference words, heard words) of each place that differs; kind is substitute, delete or insert.
    said, heard: the words of both sides as they were compared.
    """

    errors: int
    words: int
    ops: list[tuple[str, str, str]]
    said: list[str]
    heard: list[str]

    def __iter__(self) -> Iterator[object]:
        return iter((self.errors, self.words, self.ops))


def wer(reference: str, heard: str) -> Score:
    """Compare what was to be said with what was heard; unpacks as (errors, words, ops)."""
    import jiwer

    left, right = _nearest(slots(reference), slots(heard))
    count = len(words(reference))
    right = _compounds(left, right)
    left = _compounds(right, left)
    if not left or not right:
        ops = [("insert", "", " ".join(right))] if right else [("delete", " ".join(left), "")] if left else []
        return Score(len(left) + len(right), count, ops, left, right)
    output = jiwer.process_words(" ".join(left), " ".join(right))
    ops, previous = list[tuple[str, str, str]](), "equal"
    for chunk in output.alignments[0]:
        if chunk.type != "equal":
            said = " ".join(left[chunk.ref_start_idx : chunk.ref_end_idx])
            got = " ".join(right[chunk.hyp_start_idx : chunk.hyp_end_idx])
            if previous == "equal":
                ops.append((chunk.type, said, got))
            else:  # "form a" heard as "former" is one mistake in one place, and nothing was left out
                _, before, there = ops[-1]
                ops[-1] = ("substitute", f"{before} {said}".strip(), f"{there} {got}".strip())
        previous = chunk.type
    return Score(output.substitutions + output.deletions + output.insertions, count, ops, left, right)


def _nearest(left: list[list[Reading]], right: list[list[Reading]]) -> tuple[list[str], list[str]]:
    """Choose readings of both sides, one figure after the other, as long as that brings them closer."""
    sides = (left, right)
    chosen = [[alternatives[0] for alternatives in side] for side in sides]

    def distance() -> int:
        return _distance(join(chosen[0]), join(chosen[1]))

    best = distance()
    for _ in range(_MAX_ROUNDS):
        start = best
        for side, mine in zip(sides, chosen, strict=True):
            for index, alternatives in enumerate(side):
                for reading in alternatives[1:] if best else ():
                    kept, mine[index] = mine[index], reading
                    now = distance()
                    if now < best:
                        best = now
                    else:
                        mine[index] = kept
        if best in (0, start):
            break
    return join(chosen[0]), join(chosen[1])


def _compounds(model: Sequence[str], side: list[str]) -> list[str]:
    """Join two neighbours of `side` where `model` writes them as one word and that brings the two closer."""
    whole = set(model)
    index, best = 0, -1
    while index + 1 < len(side):
        word = side[index] + side[index + 1]
        if word in whole:
            joined = [*side[:index], word, *side[index + 2 :]]
            best = _distance(model, side) if best < 0 else best
            now = _distance(model, joined)
            if now < best:
                side, best = joined, now
        index += 1
    return side


def _distance(a: Sequence[str], b: Sequence[str]) -> int:
    from rapidfuzz.distance import Levenshtein  # jiwer's own engine

    return int(Levenshtein.distance(a, b))
