"""Tidy a text: Unicode form, spaces and invisible characters; and, where its language is named, write it the way it is spoken."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from ..errors import UsageError

if TYPE_CHECKING:
    from ..english.normalise import Spoken

_ENGLISH = ("english", "en", "en-us", "en-gb")

_LINE_BREAK = re.compile(r"\r\n?|[\n\v\f\x1c\x1d\x1e\x85\u2028\u2029]")
_SPACE = re.compile(r"[^\S\n]+")
_AROUND_BREAK = re.compile(r" ?\n[ \n]*")
# Soft hyphen, zero-width, joining and directional marks, byte order mark.
_INVISIBLE = re.compile("[\u00ad\u200b\u2060-\u2064\ufeff\u200e\u200f\u202a-\u202e\u2066-\u206f\u061c\ufff9-\ufffb]")
# Control characters that are no white space, half surrogates, private characters; a terminal's colour codes go whole.
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff\ue000-\uf8ff\U000f0000-\U0010ffff]")
_TERMINAL_CODE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_JOINER = re.compile("[\u200c\u200d]")


def normalize(text: str, language: str | None = None) -> str:
    """Canonical form of a text: NFC, one ASCII space between words, single line feeds, no invisible characters.

    Line breaks stay, because they are boundaries. Quotes, dashes, digits and case stay, because they carry prosody and their
    reading belongs to the model. Joiners (ZWJ, ZWNJ) stay in the scripts that spell with them (Persian, Indic, Khmer ...).
    language: None leaves the language alone; "english" (or "en") also writes figures, abbreviations and symbols as words, see
    `ouzel.english.normalise`. No other language has rules, so its name raises UsageError.
    """
    if language is not None:
        return write_out(normalize(text), language).text
    text = _LINE_BREAK.sub("\n", drop_control(text))
    text = _INVISIBLE.sub("", text)
    text = _JOINER.sub(_joiner, text)
    text = unicodedata.normalize("NFC", text)
    text = _SPACE.sub(" ", text)
    return _AROUND_BREAK.sub("\n", text).strip()


def write_out(text: str, language: str) -> Spoken:
    """The text as a speaker of the language says it, and the characters without a reading in it; UsageError for a
    language without rules.
    """
    if language.lower() not in _ENGLISH:
        raise UsageError(
            f"There are no normalisation rules for {language!r}; give 'english', or leave the language out to keep the wording."
        )
    from ..english.normalise import normalise  # its tables are of use to English only

    return normalise(text)


def drop_control(text: str) -> str:
    """Remove terminal colour codes and characters that no font shows: control (not white space), private, half surrogates."""
    return _CONTROL.sub("", _TERMINAL_CODE.sub("", text))


def _joiner(found: re.Match[str]) -> str:
    """Keep a joiner that follows a letter or sign of a script which spells with it; elsewhere it is debris, mostly of emoji."""
    text, at = found.string, found.start()
    return found.group() if at and "\u0600" <= text[at - 1] <= "\u18ff" else ""
