"""How an English text is read: the spoken form that a phone track is made of, and what cannot be said."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ...english import MARKS, spoken_form

_KEPT = 512  # texts whose reading is remembered: the pieces of a text are measured, some more than once, then spoken


@dataclass(frozen=True, slots=True)
class Reading:
    """form: symbols of `ouzel.english.phones`, with a mark at the end; () when nothing can be said.

    unspeakable: the distinct characters that were left out, in order.
    """

    form: tuple[str, ...]
    unspeakable: tuple[str, ...] = ()


@lru_cache(maxsize=_KEPT)
def read_english(text: str) -> Reading:
    """The reading of any text; linear in its length."""
    if not text.strip():
        return Reading(())
    from ...english.lexicon import default_lexicon  # megabytes, of use to this text side only
    from ...english.normalise import normalise

    lexicon = default_lexicon()
    spoken = normalise(text, known=lexicon.knows)
    form = spoken_form(spoken.text, lexicon.pronounce)
    if form and form[-1] not in MARKS:
        form.append(".")  # the voice has learnt whole sentences
    return Reading(tuple(form), tuple(dict.fromkeys(spoken.unspeakable)))
