"""Sentences for the teacher to speak: Debian's fortunes and King James Bible, plus made ones for what books lack.

Every sentence is made of words that the CMU dictionary knows and the marks , . ? ! ; : so that it has a spoken form without
guessing. The list is a pure function of the installed texts and the seed; `held_out` are the sentences that a person listens to
and the report counts: they are never in it.
"""

from __future__ import annotations

import itertools
import random
import re
import subprocess
from collections.abc import Iterator
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


_NAMES = ["Anna", "Peter", "Maria", "John", "Sarah", "Michael", "Emma", "Thomas", "Julia", "David", "Laura", "Robert", "Alice", "Henry", "Sophia", "Daniel", "Rachel", "Frank", "Helen", "George", "Nancy", "Walter", "Diana", "Simon", "Paula", "Victor", "Linda", "Arthur", "Karen", "Martin", "Oliver", "Grace", "Kevin", "Rebecca", "Steven", "Monica", "Jason", "Chloe", "Bruce", "Wendy", "Smith", "Johnson", "Miller", "Davis", "Wilson", "Anderson", "Taylor", "Moore", "Jackson", "Harris", "Clark", "Lewis", "Walker", "Young", "King", "Wright", "Hill", "Green", "Baker", "Nelson", "London", "Paris", "Berlin", "Chicago", "Boston", "Dallas", "Denver", "Seattle", "Houston", "Phoenix", "Toronto", "Madrid", "Vienna", "Dublin", "Sydney", "Tokyo", "Moscow", "Cairo", "Washington", "California", "Texas", "Florida", "Arizona", "Michigan", "Virginia", "Oregon", "Nevada", "Canada", "Germany", "France", "Spain", "Italy", "Japan", "China", "India", "Brazil"]
_MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_UNITS = ["miles", "minutes", "dollars", "percent", "pounds", "meters", "hours", "degrees", "people", "days", "weeks", "pages", "inches", "gallons", "seconds", "years", "feet"]
_THINGS = """the kitchen light|the front door|a glass of water|my new phone|the blue car|your next meeting|the morning train|our garden
the old bridge|a cup of coffee|the weather report|the second chapter|her birthday party|this evening's dinner|the living room|a red jacket
the music|the alarm|the shopping list|the big dog|the school bus|a cheese sandwich|the hotel|the airport|the office|the hospital""".replace("\n", "|").split("|")
_SHORT = """Yes.|No.|Hello.|Hello there.|Good morning.|Good night.|Thank you.|Thanks a lot.|Okay.|Sure.|Of course.|Not yet.|Maybe later.|Stop.
Go on.|Come here.|Wait.|Please wait.|I see.|Why?|Why not?|Who is it?|What time is it?|Where are you?|How are you?|Really?|Are you sure?
Come in.|Sit down.|Well done.|Great job!|Be careful!|Look out!|Help!|Never mind.|Excuse me.|I'm sorry.|See you soon.|Goodbye.|All right.
Turn left.|Turn right.|Next.|Done.|Ready?|Let's go.|Good idea.|Too bad.|One moment.|Right now.|At last.|No problem.|You're welcome.""".replace("\n", "|").split("|")
_FRAMES = """{n} and {m} make {s}.|The number is {n}.|It costs {n} dollars and {c} cents.|The meeting is at {t}.|Today is {d}, {mo} {o}.
We left at {t} and arrived at {t2}.|{name} lives in {place}.|Call {name} at {digits}.|The code is {digits}.|Turn on {thing}, please.
{name} was born in {y}.|In {y} there were {n} {u}.|It is {n} {u} to {place}.|Did {name} see {thing}?|Please spell it: {letters}.
{letters} stands for nothing.|The temperature is {n} degrees.|Set a timer for {n} {u}.|{name} and {name2} bought {thing}.|Is it {t} already?
On {mo} {o}, {name} moved from {place} to {place2}.|Where is {thing}?|I can't find {thing}, {name}.|Room {n} is on the {o} floor.
About {n} percent of the {u} were gone.|Doctor {name} will see you at {t}.|Mister {name} paid {big} dollars.|Chapter {n}, page {big}.""".replace("\n", "|").split("|")


def _letters(rng: random.Random) -> str:
    return ", ".join(rng.choice(["A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N", "O", "P", "Q", "R", "S", "T", "U", "V", "W", "X", "Y", "Z"]) for _ in range(rng.randint(2, 5)))


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
    while True:
        if rng.random() < 0.25:
            yield rng.choice(_SHORT)
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
            "d": rng.choice(_DAYS),
            "mo": rng.choice(_MONTHS),
            "o": num2words(rng.randint(1, 31), to="ordinal"),
            "y": num2words(rng.randint(1850, 2040), to="year"),
            "u": rng.choice(_UNITS),
            "name": rng.choice(_NAMES[:60]),
            "name2": rng.choice(_NAMES[:60]),
            "place": rng.choice(_NAMES[60:]),
            "place2": rng.choice(_NAMES[60:]),
            "thing": rng.choice(_THINGS),
            "letters": _letters(rng),
            "digits": " ".join(num2words(rng.randrange(10)) for _ in range(rng.randint(3, 7))),
        }
        text = _plain(rng.choice(_FRAMES).format(**fields))
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
