"""Whose voice a client means: names of this model, aliases of the operator, and the names that OpenAI's clients send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ouzel.api import Voice
from ouzel.errors import UsageError
from ouzel.request import VoiceInfo

# Some clients refuse to send any other name, so each of them is some voice of ours.
OPENAI_VOICES = (
    "alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage", "shimmer", "verse",
)  # fmt: skip


def openai_voice(name: str, voices: Sequence[VoiceInfo]) -> str | None:
    """The local voice behind one of OpenAI's names, dealt out in order; None if it is no such name or there are no voices."""
    lowered = name.lower()
    if lowered not in OPENAI_VOICES or not voices:
        return None
    return voices[OPENAI_VOICES.index(lowered) % len(voices)].name


def local_voice(name: str | None, voice: Voice, aliases: Mapping[str, str]) -> str | None:
    """The name to give to the model; None is its default. Unknown names go through, the model's own error lists the valid ones.

    Raises UsageError for an empty name.
    """
    if name is None or name.lower() == "default":
        return None
    if not name.strip():
        raise UsageError("voice must not be empty; leave it out for the default voice.", param="voice")
    own = {info.name.lower() for info in voice.voices}
    if name.lower() in own:
        return name
    for alias, target in aliases.items():
        if alias.lower() == name.lower():
            return target
    if name.lower() in OPENAI_VOICES:
        return openai_voice(name, voice.voices)
    return name
