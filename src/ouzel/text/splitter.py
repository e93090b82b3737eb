"""The incremental splitter: text in as it arrives, whole sentences or clauses out."""

from __future__ import annotations

from typing import Literal, get_args

from ..errors import UsageError, choose
from .boundary import SOFT_LIMIT, find_cut
from .characters import speakable

Granularity = Literal["none", "sentence", "clause"]
GRANULARITIES: tuple[str, ...] = get_args(Granularity)

# Two hours of speech. More is a wrong file or an endless stream, and would be held in memory as one request.
MAX_TEXT_CHARS = 100_000


class Splitter:
    """Cut a stream of text into segments to speak (contract 8.6); the segments never depend on how the text was chunked.

    granularity: "none" gives one segment at flush(), "sentence" and "clause" give segments as soon as they are certain.
    Segments come out stripped, each with a letter or digit in it; text without any (rules, lone dashes) joins the next segment
    or is dropped at the end. At most SOFT_LIMIT characters are held; a longer segment is cut at a clause mark, else at a space.
    Raises UsageError for an unknown granularity, and in "none" mode for more than MAX_TEXT_CHARS of text.
    """

    def __init__(self, granularity: Granularity = "sentence") -> None:
        if granularity not in GRANULARITIES:
            raise choose("split granularity", granularity, GRANULARITIES)
        self.granularity = granularity
        self._parts: list[str] = []  # "none"
        self._held = 0
        self._text = ""  # "sentence", "clause": starts with the first visible character of the open segment
        self._scan = 0

    def feed(self, text: str) -> list[str]:
        """Take the next piece of text, of any size; return the segments it completes, often none."""
        if self.granularity == "none":
            self._held += len(text)
            if self._held > MAX_TEXT_CHARS:
                raise UsageError(
                    f"More than {MAX_TEXT_CHARS:,} characters without a split; use split granularity 'sentence' or 'clause'."
                )
            self._parts.append(text)
            return []
        self._text += text
        return self._drain(ended=False)

    def flush(self) -> list[str]:
        """The text is complete: return what is left, if it can be spoken, and start afresh."""
        if self.granularity == "none":
            whole = "".join(self._parts).strip()
            self._parts, self._held = [], 0
            return [whole] if speakable(whole) else []
        segments = self._drain(ended=True)
        self._text, self._scan = "", 0
        return segments

    def _drain(self, *, ended: bool) -> list[str]:
        text = self._text
        start = 0
        segments: list[str] = []
        while True:
            while start < len(text) and text[start].isspace():
                start += 1
            window = text[start : start + SOFT_LIMIT]
            if not window:
                break
            cut, self._scan = find_cut(window, self._scan, ended=ended and start + len(window) == len(text), clause=self._clause)
            if not cut:
                break
            segment = window[:cut].strip()
            if speakable(segment):
                segments.append(segment)
            start += cut
        self._text = text[start:]
        return segments

    @property
    def _clause(self) -> bool:
        return self.granularity == "clause"


def split(text: str, granularity: Granularity = "sentence") -> list[str]:
    """Split a whole text: feed() and flush() of a fresh Splitter."""
    splitter = Splitter(granularity)
    return splitter.feed(text) + splitter.flush()
