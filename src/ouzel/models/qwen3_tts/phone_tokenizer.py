"""English text to the ids of a phone track: one id a codec frame, as a speaker says it at a certain speed.

A checkpoint or bundle with this text side carries `phone_track.json` (the `Track`'s value, and under "prosody" the `Prosody`'s)
and `prosody.safetensors` (its weights).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from ...english import BREAK, MARKS, PHONES, SYMBOLS
from ...english.phones import is_vowel
from ...errors import OuzelError, UsageError
from ...text import unspeakable_characters
from ...text.characters import describe
from .prosody import LEAD_MS, TAIL_MS, Prosody
from .reading import Reading, read_english
from .strict import load_json
from .track import FRAME_MS, SPECIALS, THIRD_MS, Track

TRACK, PROSODY = "phone_track.json", "prosody.safetensors"
# Mean ms of a symbol in the teacher's speech: enough to cut a text into pieces without running the prosody on all of it.
_STRESSED_MS, _OTHER_MS, _BREAK_MS, _MARK_MS = 140.0, 76.0, 60.0, 160.0


@dataclass(frozen=True)
class PhoneTokenizer:
    """Implements `text_side.Tokenizer` for one speaker of the prosody, the first unless `speaking` chose another.

    speed: 2 is twice as fast. read: text to its reading.
    """

    track: Track
    prosody: Prosody
    voice: str = ""
    speed: float = 1.0
    read: Callable[[str], Reading] = read_english
    _index: Mapping[str, int] = field(init=False, repr=False, compare=False)

    kind = "phone_track"
    aligned = True

    def __post_init__(self) -> None:
        """ValueError for parts that do not fit together."""
        object.__setattr__(self, "voice", self.voice or self.prosody.speakers[0])
        object.__setattr__(self, "_index", {symbol: i for i, symbol in enumerate(self.track.alphabet)})
        for name, has, needs in (("alphabet", self.track.alphabet, PHONES), ("symbols", self.prosody.symbols, SYMBOLS)):
            if missing := [symbol for symbol in needs if symbol not in has]:
                raise ValueError(f"{name} lacks {missing[0]!r}")

    def speaking(self, voice: str | None, speed: float) -> Self:
        """The same text side for another speaker, None for the first, and speed."""
        return replace(self, voice=voice or self.prosody.speakers[0], speed=speed)

    def encode(self, text: str) -> list[int]:
        """One id for each frame of the spoken text; [] when nothing in it can be spoken."""
        form = self.read(text).form
        if not form:
            return []
        thirds, pitch = self.prosody.track(form, self.voice, self._index, self.speed)
        ids: list[int] = self.track.ids(thirds, pitch).tolist()
        return ids

    def turn(self, role: str, text: str) -> list[int]:
        """Ids of the template's "assistant" and line break, then of the text. There are none for other roles."""
        if role not in SPECIALS:
            raise UsageError(
                f"This voice knows no {role!r} turns in its prompt, so it follows no instructions.", param="instructions"
            )
        return [SPECIALS.index(role), *self.newline, *self.encode(text)]

    @property
    def newline(self) -> list[int]:
        return [SPECIALS.index("\n")]

    def estimate(self, text: str) -> int:
        """About as many ids as `encode` gives, from the kinds of phones alone; 0 exactly when it gives none."""
        form = self.read(text).form
        if not form:
            return 0
        total = LEAD_MS + TAIL_MS + sum(_typical_ms(symbol, self.speed) for symbol in form[:-1])
        return round(total / FRAME_MS)

    def token_id(self, token: str) -> int | None:
        return SPECIALS.index(token) if token in SPECIALS else None

    def review(self, text: str) -> tuple[str, ...]:
        """What the user should know about a text: which characters are left out. UsageError when nothing remains.

        Pictures and control characters are not named again: the text's preparation has done so.
        """
        reading = self.read(text)
        if not reading.form:
            shown = describe([c for c in dict.fromkeys(text) if not c.isspace()])
            raise UsageError(
                f"This voice speaks English, and nothing in the text can be spoken: it has only {shown}.", param="text"
            )
        told = set(unspeakable_characters(text))
        left_out = [c for c in reading.unspeakable if c not in told]
        return (f"This voice speaks English and left out what it cannot say: {describe(left_out)}.",) if left_out else ()

    def save(self, folder: Path) -> None:
        """Write phone_track.json and prosody.safetensors."""
        value = {**self.track.value(), "prosody": self.prosody.value()}
        (folder / TRACK).write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        self.prosody.save(folder / PROSODY)


def load_phone_tokenizer(track: Path, prosody: Path, error: type[OuzelError]) -> PhoneTokenizer:
    """From the two files that `PhoneTokenizer.save` writes; `error` names the one that is damaged."""
    value = _json(track, error)
    try:
        parsed, about = Track.parse(value), dict(value["prosody"])
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as e:
        raise error(f"{track} is not a phone track ({e!r}); get it again.") from e
    try:
        tokenizer = PhoneTokenizer(parsed, Prosody.read(about, prosody))
        # Missing or misshapen weights show when they are used.
        _, pitch = tokenizer.prosody.track(("AH1", "."), tokenizer.voice, {s: i for i, s in enumerate(parsed.alphabet)})
        if not np.isfinite(pitch).all():
            raise ValueError("values that are not finite")
    except (OuzelError, KeyError, ValueError, TypeError, IndexError, AttributeError) as e:
        reason = str(e) if isinstance(e, OuzelError) else repr(e)
        raise error(f"{prosody} and {track.name} do not make a prosody ({reason}); get them again.") from e
    return tokenizer


def _json(path: Path, error: type[OuzelError]) -> dict[str, Any]:
    try:
        return load_json(path)
    except OuzelError as e:
        raise error(str(e)) from e


def _typical_ms(symbol: str, speed: float) -> float:
    if symbol == BREAK:
        return _BREAK_MS / speed
    if symbol in MARKS:
        return _MARK_MS / speed
    usual = _STRESSED_MS if is_vowel(symbol) and not symbol.endswith("0") else _OTHER_MS
    return max(usual / speed, THIRD_MS)
