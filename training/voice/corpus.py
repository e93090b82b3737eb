"""Sentences for the teacher to speak: Debian's fortunes and King James Bible, plus made ones for what books lack.

Every sentence is made of words that the CMU dictionary knows and the marks , . ? ! ; : so that it has a spoken form without
guessing. The list is a pure function of the installed texts and the seed; `held_out` are the sentences that a person listens to
and the report counts: they are never in it.
"""

from __future__ import annotations

import itertools
import random
import re
import string
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from num2words import num2words

from .lexicon import knows
from .sentences import held_out

FORTUNES = Path("/usr/share/games/fortunes")
_SPLIT = re.compile(r"(?<=[.?!]) +")
_SHAPE = re.compile(r"[A-Z][A-Za-z']*([,;:]? [A-Za-z']+){2,17}[.?!]")


def words(sentence: str) -> list[str]:
    return [word.strip("'") for word in re.findall(r"[a-z']+", sentence.lower())]


def usable(sentence: str) -> bool:
    return all(knows(word) for word in words(sentence))


def fortunes() -> Iterator[str]:
    for path in sorted(FORTUNES.iterdir()):
        if path.suffix in (".dat", ".u8") or path.name == "ascii-art":
            continue
        for entry in path.read_text(encoding="utf-8", errors="ignore").split("\n%\n"):
            for sentence in _SPLIT.split(re.sub(r"\s+", " ", entry)):
                if _SHAPE.fullmatch(sentence.strip()) and usable(sentence):
                    yield sentence.strip()


def bible() -> Iterator[str]:
    text = subprocess.run(["bible", "-f", "Luke1:1-John21:25"], capture_output=True, text=True, check=False).stdout
    for verse in text.splitlines():
        for sentence in _SPLIT.split(re.sub(r"^\S+ ", "", verse)):
            if _SHAPE.fullmatch(sentence.strip()) and usable(sentence):
                yield sentence.strip()


@cache
def _made() -> dict[str, list[str]]:
    return tomllib.loads((Path(__file__).parent / "sentences" / "made.toml").read_text(encoding="utf-8"))


def _letters(rng: random.Random) -> str:
    return ", ".join(rng.choice(string.ascii_uppercase) for _ in range(rng.randint(2, 5)))


def _clock(rng: random.Random) -> str:
    hour = num2words(rng.randint(1, 12))
    form = rng.randrange(5)
    minute = rng.randint(1, 59)
    half = rng.choice(("A M", "P M"))
    return (
        f"{hour} o'clock",
        f"half past {hour}",
        f"a quarter to {hour}",
        f"{hour} {'oh ' if minute < 10 else ''}{num2words(minute)}",
        f"{hour} {num2words(minute) if minute > 9 else 'oh ' + num2words(minute)} {half}",
    )[form]


def _plain(text: str) -> str:
    return text.replace("-", " ")


def made(rng: random.Random) -> Iterator[str]:
    """Endless: numbers, dates, times, names, questions, spelled letters, short utterances."""
    parts = _made()
    while True:
        if rng.random() < 0.25:
            yield rng.choice(parts["short"])
            continue
        n, m = rng.randint(0, 130), rng.randint(2, 99)
        fields = {
            "n": num2words(n),
            "m": num2words(m),
            "s": num2words(n + m),
            "c": num2words(rng.randint(2, 99)),
            "big": num2words(rng.randint(131, 99999)),
            "t": _clock(rng),
            "t2": _clock(rng),
            "d": rng.choice(parts["days"]),
            "mo": rng.choice(parts["months"]),
            "o": num2words(rng.randint(1, 31), to="ordinal"),
            "y": num2words(rng.randint(1850, 2040), to="year"),
            "u": rng.choice(parts["units"]),
            "name": rng.choice(parts["names"]),
            "name2": rng.choice(parts["names"]),
            "place": rng.choice(parts["places"]),
            "place2": rng.choice(parts["places"]),
            "thing": rng.choice(parts["things"]),
            "letters": _letters(rng),
            "digits": " ".join(num2words(rng.randrange(10)) for _ in range(rng.randint(3, 7))),
        }
        text = _plain(rng.choice(parts["frames"]).format(**fields))
        yield text[0].upper() + text[1:]


def corpus(seed: int = 0) -> Iterator[str]:
    """Sentences without end, each at most once while the books last: 78 % books, 14 % made, 8 % two sentences in one."""
    rng = random.Random(seed)
    secret = {tuple(words(sentence)) for sentence in held_out()}
    books = sorted(set(fortunes()) | set(bible()))
    rng.shuffle(books)
    pool, extra, seen = itertools.cycle(books), made(rng), set[str]()
    while True:
        kind = rng.random()
        text = next(extra) if kind < 0.14 else next(pool) if kind < 0.92 else f"{next(pool)} {next(extra)}"
        if not usable(text) or tuple(words(text)) in secret or (kind < 0.92 and text in seen and rng.random() < 0.9):
            continue
        seen.add(text)
        yield text
