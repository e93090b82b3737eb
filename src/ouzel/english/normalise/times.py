"""Times of day, durations and ratios: 7:45, 6:30 pm, 18:05, 7:00, 10 a.m., 9-5pm, 1:02:03, 16:9."""

from __future__ import annotations

import re

from .numbers import cardinal, digit_by_digit, pair
from .spelling import spelled

_HALF = r"(?:(?P<dotted>[AaPp])\.\s?[Mm]\b\.?|(?P<half>[AaPp])[Mm]\b)"
_ANY_HALF = r"(?:[AaPp]\.\s?[Mm]\b\.?|[AaPp][Mm]\b)"
_CLOCK = r"\d{1,2}(?::\d\d)?"
_SPAN = re.compile(rf"(?<![\w:.,-])({_CLOCK})(\s?{_ANY_HALF})?\s?-\s?(?={_CLOCK}(?![\d:])(\s?{_ANY_HALF})?)")
_TIME = re.compile(
    rf"(?<![\w:.,])(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?:\.(?P<part>\d+))?)?(?![\d:])(?:\s?{_HALF})?(?:\s?o'clock\b)?",
    re.IGNORECASE,
)
_BRITISH = re.compile(rf"(?<![\w:.,])(?P<hour>1?\d)\.(?P<minute>[0-5]\d)\s?{_HALF}")
_HOUR = re.compile(rf"(?<![\w:.,])(?P<hour>1?\d|2[0-4])\s?{_HALF}")
_MILITARY = re.compile(r"(?<![\w:.,])([01]\d|2[0-4])(\d\d)(?=\s(?:hours|hrs)\b)")
_RATIO = re.compile(r"(?<![\w:.,])(\d+):(\d+)(?![\d:])")
_DURATION = re.compile(r"(?<![\w:.,])(\d+):([0-5]\d)\.(\d+)(?![\d:])")
# A capital after "a.m." begins a sentence, unless it names a day or a zone.
_NO_SENTENCE = re.compile(r"\s+(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|[A-Z]{2})")
_SENTENCE = re.compile(r"\s*$|\s+[A-Z]")


def speak_times(text: str) -> str:
    text = _DURATION.sub(lambda m: f"{cardinal(m[1])} {pair(m[2])} point {digit_by_digit(m[3])}", text)
    text = _SPAN.sub(_span, text)
    text = _TIME.sub(_time, text)
    text = _BRITISH.sub(_time, text)
    text = _HOUR.sub(_time, text)
    text = _MILITARY.sub(lambda m: f"{pair(m[1])} {'hundred' if m[2] == '00' else pair(m[2])}", text)
    return _RATIO.sub(lambda m: f"{cardinal(m[1])} to {cardinal(m[2])}", text)


def _span(found: re.Match[str]) -> str:
    """Two times with a dash between them; two plain numbers are left to the ranges."""
    is_time = ":" in found[1] or found[2] or found[3] or ":" in found.string[found.end() : found.end() + 3]
    return f"{found[1]}{found[2] or ''} to " if is_time else found.group()


def _time(found: re.Match[str]) -> str:
    groups = found.groupdict()
    hour, minute, second = int(found["hour"]), groups.get("minute"), groups.get("second")
    half = found["dotted"] or found["half"]
    parts = [cardinal(str(hour))]
    if minute is not None and (minute != "00" or second):
        parts.append(pair(minute) if minute != "00" else "zero")
    elif not half and minute is not None:
        if hour in (0, 24):
            parts = ["midnight"]
        else:
            parts.append("o'clock" if hour <= 12 else "hundred")
    if second:
        parts.append(pair(second) if second != "00" else "zero")
        if groups.get("part"):
            parts.append(f"point {digit_by_digit(groups['part'])}")
    if half:
        parts.append(spelled(f"{half}m"))
    words = " ".join(parts)
    if found["dotted"] and found.group().endswith("."):
        rest = found.string[found.end() : found.end() + 12]
        if _SENTENCE.match(rest) and not _NO_SENTENCE.match(rest):
            words += "."
    return words
