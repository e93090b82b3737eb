"""Letters and digits in one: A4, B2B, covid19, iPhone15, MP3, 5G."""

from __future__ import annotations

import re
from collections.abc import Callable

from .numbers import cardinal, code, digit_by_digit
from .spelling import spelled

_TOKEN = re.compile(r"(?<![A-Za-z0-9])(?:[A-Za-z]++\d|\d++[A-Za-z])[A-Za-z0-9]*+")
_RUN = re.compile(r"[A-Za-z]+|\d+")
_HYPHEN = re.compile(r"(?<=[A-Za-z])-(?=\d)")
_DECIMAL = re.compile(r"(?<![\w.])(\d++\.\d++)(?=[A-Za-z])")
_MANY = 4  # runs from which on a token is a key or a hash, not a name


def speak_mixed(text: str, known: Callable[[str], bool] | None) -> str:
    def token(found: re.Match[str]) -> str:
        runs = _RUN.findall(found.group())
        jumble = len(runs) > _MANY and len(found.group()) > 8
        words = []
        for run in runs:
            if run.isalpha():
                words.append(_letters(run, known, jumble))
            elif jumble:
                words.append(digit_by_digit(run))
            else:
                words.append(code(run) if words or runs[1:] in (["p"], ["i"]) else cardinal(run))
        rest = found.string[found.end() : found.end() + 2]
        if runs[-1].isdigit() and rest[:1] == "." and rest[1:].isdigit():  # PM2.5: the figure goes on
            words[-1] = runs[-1]
        return " ".join(words)

    return _TOKEN.sub(token, _DECIMAL.sub(r"\1 ", _HYPHEN.sub(" ", text)))


def _letters(run: str, known: Callable[[str], bool] | None, jumble: bool) -> str:
    """One letter is its name; a short run that is no word is spelled."""
    strange = known is not None and len(run) <= 4 and run.islower() and not known(run)
    if len(run) == 1 or (len(run) == 2 and run.isupper()) or jumble or strange:
        return spelled(run)
    return run
