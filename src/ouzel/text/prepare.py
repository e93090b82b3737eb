"""From what a user typed to what a voice can say, or one sentence that tells why not."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import UsageError
from .characters import describe, speakable, unspeakable_characters
from .markup import strip_markup
from .normalise import normalize, write_out
from .splitter import MAX_TEXT_CHARS


@dataclass(frozen=True, slots=True)
class PreparedText:
    """text: ready for the splitter and the tokenizer, surely speakable. warnings: one sentence each, mostly none."""

    text: str
    warnings: tuple[str, ...] = ()


def prepare(
    text: str, *, strip: bool = True, normalise: bool = True, language: str | None = None, max_chars: int = MAX_TEXT_CHARS
) -> PreparedText:
    """Check and clean one request's text; the same rule for the command line, the Python API and a server (P32, P33, P34).

    strip: take out Markdown, HTML tags and emoji. normalise: see normalize(); both off leaves the text as it is, for parity runs.
    language: "english" writes figures and symbols as words and leaves out, with a warning, what has no English reading.
    Raises UsageError for text that is empty, has nothing to speak (before or after stripping), is longer than max_chars,
    or is not valid Unicode and may not be mended.
    """
    if len(text) > max_chars:
        raise UsageError(
            f"The text has {len(text):,} characters; at most {max_chars:,} are spoken at once, so send it in parts.", param="text"
        )
    if not text.strip():
        raise UsageError("The text is empty; give at least one word to speak.", param="text")
    if not speakable(text):
        shown = describe([c for c in dict.fromkeys(text) if not c.isspace()])
        raise UsageError(
            f"Nothing in the text can be spoken: it has only {shown}. Add at least one letter or digit.", param="text"
        )
    clean = strip_markup(text) if strip else text
    foreign: tuple[str, ...] = ()
    if normalise:
        clean = normalize(clean)
        if language is not None:
            spoken = write_out(clean, language)
            clean, foreign = spoken.text, spoken.unspeakable
    if any("\ud800" <= c <= "\udfff" for c in clean):
        raise UsageError(
            "The text is not valid Unicode (half of a surrogate pair); send UTF-8, or leave the normaliser on.", param="text"
        )
    if not speakable(clean) and foreign:
        raise UsageError(
            f"Nothing in the text has an English reading: {describe(list(foreign))}. Add at least one English word.", param="text"
        )
    if not speakable(clean):
        raise UsageError(
            "The text is only markup, so nothing is left to speak; add words, or switch the stripping of markup off.",
            param="text",
        )
    return PreparedText(clean, tuple(_warnings([*unspeakable_characters(text), *foreign], clean)))


def _warnings(characters: list[str], clean: str) -> list[str]:
    """Say once what was dropped, or what is left although a voice will not say it."""
    found = list(dict.fromkeys(characters))
    kept = [c for c in found if c in clean]
    dropped = [c for c in found if c not in clean]
    warnings = []
    if dropped:
        warnings.append(f"Left out characters that cannot be spoken: {describe(dropped)}.")
    if kept:
        warnings.append(f"The text has characters that a voice may skip or misread: {describe(kept)}.")
    return warnings
