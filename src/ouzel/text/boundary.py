"""Where a text may be cut: the decision behind the incremental splitter and the budget splitter.

Rules of contract 8.6: ASCII marks need whitespace after them, CJK, Indic and Arabic marks do not, closing quotes stay. Newlines
cut as well.
Each decision looks only at the window it is given, so it cannot depend on how the text was cut into chunks on its way here.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from . import abbreviations
from .characters import (
    CLOSERS,
    DIRECT_CLAUSES,
    DIRECT_ENDS,
    IN_NUMBERS,
    NEWLINES,
    SPACED_CLAUSES,
    SPACED_CLOSERS,
    SPACED_ENDS,
    first_speakable,
    is_extending,
)

# Characters of one segment: a minute of English. No ordinary sentence gets there, so only runaway input is cut by it.
SOFT_LIMIT = 1000

_ENDS = SPACED_ENDS + DIRECT_ENDS
_DIRECT = DIRECT_ENDS + DIRECT_CLAUSES
_FIND = {
    False: re.compile(f"[{re.escape(_ENDS + NEWLINES)}]"),
    True: re.compile(f"[{re.escape(_ENDS + SPACED_CLAUSES + DIRECT_CLAUSES + NEWLINES)}]"),
}
_SPACED_RUN = re.compile(f"[{re.escape(_ENDS + SPACED_CLOSERS)}]*")
_DIRECT_RUN = re.compile(f"[{re.escape(_ENDS + CLOSERS)}]*")
_OPENERS = frozenset('([{"“„‘‚«»¿¡*_')
_EMPHASIS = frozenset("*_~`")
_STRONG = frozenset("!?\u203c\u2047\u2048\u2049")  # ! ? ‼ ⁇ ⁈ ⁉ need no second look at the word before
_GAP = re.compile(r"\s*")
_BLANKS = re.compile(rf"[^\S{NEWLINES}]*")
_WORD = re.compile(r"[^\W\d_]+")
_TOKEN = re.compile(r"(?<![^\W_])[^\W\d_](?:[^\W\d_.]|\.(?=[^\W\d_])|\.-)*$")
_NUMBER = re.compile(r"(?<!\S)[(\[]?(?:\d{1,3}\.)*\d{1,3}$")
_TOKEN_REACH = 24  # longest abbreviation with room to spare


def find_cut(window: str, scan: int, *, ended: bool, clause: bool) -> tuple[int, int]:
    """Look for the first boundary of a window that starts at a segment's first character.

    window: at most SOFT_LIMIT characters; scan: where an earlier call stopped; ended: the text ends with the window.
    Returns (cut, scan): the segment is window[:cut], or cut is 0 and more text is needed. A full window always yields a cut.
    """
    full = len(window) >= SOFT_LIMIT
    speech = first_speakable(window)
    while found := _FIND[clause].search(window, scan):
        at = found.start()
        verdict, after = _judge(window, at, ended=ended)
        if verdict is None and not full:
            return (len(window) if ended else 0), at
        if verdict and 0 <= speech < after:
            return after, 0
        scan = after
    if ended:
        return len(window), 0
    if full:
        return _forced_cut(window), 0
    return 0, len(window)


def cuts(text: str, *, clause: bool) -> list[int]:
    """End offsets of the segments of a whole text; the last one is len(text). A tail without speech joins its predecessor."""
    out: list[int] = []
    start = 0
    while start < len(text):
        window = text[start : start + SOFT_LIMIT]
        cut, _ = find_cut(window, 0, ended=start + len(window) == len(text), clause=clause)
        start += cut
        out.append(start)
    if len(out) > 1 and first_speakable(text[out[-2] :]) < 0:
        del out[-2]
    return out


def _judge(text: str, at: int, *, ended: bool) -> tuple[bool | None, int]:
    """Is the mark at `at` a boundary? (True | False | None = needs more text, offset after the mark and what closes with it)."""
    mark = text[at]
    if mark in NEWLINES:
        return True, at + 1
    direct = mark in _DIRECT
    run = (_DIRECT_RUN if direct else _SPACED_RUN).match(text, at + 1)
    after = run.end() if run else at + 1
    marks = text[at:after]
    direct = direct or any(c in DIRECT_ENDS for c in marks)
    if after == len(text):
        return (True, after) if ended else (None, after)
    if direct:
        in_number = mark in IN_NUMBERS and len(marks) == 1 and at > 0 and text[at - 1].isdigit() and text[after].isdigit()
        return not in_number, after
    if not text[after].isspace():
        return False, after
    if text.count("«", 0, after) > text.count("»", 0, after):
        gap = _BLANKS.match(text, after)
        peek = gap.end() if gap else after
        if peek == len(text):
            return (True, after) if ended else (None, after)
        if text[peek] == "»":  # French: « Oui. » keeps a space before the closing quote
            after = peek + 1
    return _judge_spaced(text, at, after, ended=ended)


def _judge_spaced(text: str, at: int, after: int, *, ended: bool) -> tuple[bool | None, int]:
    """A mark of the "whitespace must follow" kind, with whitespace at `after` already seen."""
    marks = text[at:after]
    if text[at] in SPACED_CLAUSES:
        return True, after
    if marks[-1] in SPACED_CLOSERS and marks[-1] not in _EMPHASIS:  # "Really?" she asked.
        verdict = _unless(text, after, ended, str.islower)
        if not verdict[0]:
            return verdict
    if not _STRONG.isdisjoint(marks):
        return True, after
    if marks[0] == "\u2026" or marks.startswith(".."):
        return _unless(text, after, ended, str.islower)  # Wait... what?
    if at == 0 or text[at - 1].isspace():
        spaced_dots = text[:at].rstrip().endswith(".")
        return _unless(text, after, ended, lambda c: c == "." or (spaced_dots and c.islower()))  # Well . . . yes
    return _judge_dot(text, at, after, ended=ended)


def _judge_dot(text: str, at: int, after: int, *, ended: bool) -> tuple[bool | None, int]:
    """One dot after a word or number: abbreviation, initial, ordinal, list number, or the end of a sentence."""
    reach = text[max(0, at - _TOKEN_REACH) : at]
    if number := _NUMBER.search(reach):
        if number.start() == 0 and at <= _TOKEN_REACH:
            return False, after  # "3. Third item": a list number opens the segment
        return _unless(text, after, ended, str.islower, abbreviations.GERMAN_MONTHS)
    found = _TOKEN.search(reach)
    if not found:
        return True, after
    token = found.group().lower()
    before = reach[found.start() - 1] if found.start() else " "
    if token in abbreviations.ALWAYS:
        return False, after
    if token in abbreviations.BEFORE_NUMBER:
        return _unless(text, after, ended, str.isdigit)
    if token in abbreviations.BEFORE_CAPITAL:
        return _unless(text, after, ended, _not_upper)
    if token.endswith("str"):  # German street names: Schulstr. 5
        return _unless(text, after, ended, str.isdigit)
    letters = token.replace("-", "").split(".")  # J.-P. Sartre
    initials = all(len(part) == 1 and part.upper() != part.lower() for part in letters) and (
        before.isspace() or before in _OPENERS
    )
    return not initials, after


def _unless(
    text: str, after: int, ended: bool, continues: Callable[[str], bool], words: frozenset[str] = frozenset()
) -> tuple[bool | None, int]:
    """A boundary unless the next visible character continues the sentence, or the next word is one of `words`."""
    gap = _GAP.match(text, after)
    peek = gap.end() if gap else after
    if any(c in NEWLINES for c in text[after:peek]):
        return True, after
    if peek == len(text):
        return (True, after) if ended else (None, after)
    if continues(text[peek]):
        return False, after
    if words and (word := _WORD.match(text, peek)):
        if word.end() == len(text) and not ended:
            return None, after
        return word.group().lower() not in words, after
    return True, after


def _not_upper(c: str) -> bool:
    return not c.isupper()


def _forced_cut(window: str) -> int:
    """Cut a window that has no boundary: after the last clause mark of its second half, else at the last space, else anywhere."""
    half = len(window) // 2
    for at in range(len(window) - 2, half, -1):
        if window[at] in DIRECT_CLAUSES or (window[at] in SPACED_CLAUSES and window[at + 1].isspace()):
            return at + 1
    for at in range(len(window) - 1, half, -1):
        if window[at].isspace():
            return at + 1
    for at in range(len(window) - 1, half, -1):
        if not is_extending(window[at]) and window[at - 1] != "\u200d":
            return at
    return len(window)
