"""Qwen3-TTS-class speech, streamed on the device itself.

    import ouzel

    with ouzel.load() as voice:
        for chunk in voice.stream("Hello."):
            ...                               # chunk.samples, .sample_rate, .index, .is_last
        voice.say("Hello again.", seed=7).save("hello.wav")

Names are imported on first use, so that a command that does not speak starts without the engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ouzel.api import TextOptions, Voice, load
    from ouzel.audio.pcm import AudioChunk
    from ouzel.audio.player import Player
    from ouzel.engine import EngineOptions, Speech, StuckPolicy, Utterance
    from ouzel.errors import ClosedError, OuzelError, SynthesisError, UsageError
    from ouzel.request import SpeechRequest, VoiceInfo
    from ouzel.schedule import ScheduleSpec

__all__ = [
    "AudioChunk",
    "ClosedError",
    "EngineOptions",
    "OuzelError",
    "Player",
    "ScheduleSpec",
    "Speech",
    "SpeechRequest",
    "StuckPolicy",
    "SynthesisError",
    "TextOptions",
    "UsageError",
    "Utterance",
    "Voice",
    "VoiceInfo",
    "load",
]

_HOMES = {
    "ouzel.api": ("TextOptions", "Voice", "load"),
    "ouzel.audio.pcm": ("AudioChunk",),
    "ouzel.audio.player": ("Player",),
    "ouzel.engine": ("EngineOptions", "Speech", "StuckPolicy", "Utterance"),
    "ouzel.errors": ("ClosedError", "OuzelError", "SynthesisError", "UsageError"),
    "ouzel.request": ("SpeechRequest", "VoiceInfo"),
    "ouzel.schedule": ("ScheduleSpec",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'ouzel' has no attribute {name!r}; it offers {', '.join(__all__)}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
