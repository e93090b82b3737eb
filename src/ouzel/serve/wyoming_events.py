"""The events of Wyoming: what comes in, read within limits and checked, and what describes this server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from wyoming.error import Error
from wyoming.event import Event
from wyoming.info import Attribution, Info, TtsProgram, TtsVoice

from ouzel.api import Voice
from ouzel.errors import UsageError, choose
from ouzel.request import SpeechRequest, VoiceInfo
from ouzel.serve.api_error import api_error_of
from ouzel.serve.voicing import local_voice

MAX_PAYLOAD_BYTES = 1 << 20  # of events that are read over
_PIECE_BYTES = 1 << 16
_AUTO = "auto"
_ANY = "mul"  # ISO 639: several languages, where a model does not say which
# The names of the models' languages, and the tags by which Wyoming's clients know them.
_TAGS = {
    "chinese": "zh",
    "english": "en",
    "japanese": "ja",
    "korean": "ko",
    "german": "de",
    "french": "fr",
    "russian": "ru",
    "portuguese": "pt",
    "spanish": "es",
    "italian": "it",
    "beijing_dialect": "zh",
    "sichuan_dialect": "zh",
}


# ---- reading


def most_bytes(max_input_chars: int) -> int:
    """Of an event's line, and of its data: the longest text in the widest JSON (an escaped pair a character), and some more."""
    return 12 * max_input_chars + (1 << 14)


async def read_event(reader: asyncio.StreamReader, most: int) -> Event | None:
    """The next event, without its payload, which no event to a speaker needs; None: the client has gone.

    most: see `most_bytes`; the reader's own limit. Raises UsageError for what is no event; nothing after it can be trusted to be
    one. In particular a web page that makes a browser send HTTP here gets no further than the request line.
    """
    try:
        header = _object(await reader.readuntil(b"\n"))
        data = header.get("data")
        if data is None:
            data = {}
        if not isinstance(data, dict):
            raise UsageError("An event's data must be a JSON object.")
        size = _length(header, "data_length", most)
        if size:
            data.update(_object(await reader.readexactly(size)))
        left = _length(header, "payload_length", MAX_PAYLOAD_BYTES)
        while left:
            left -= len(await reader.readexactly(min(left, _PIECE_BYTES)))
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError:
        raise UsageError(f"An event's line is longer than {most:,} bytes.") from None
    kind = header.get("type")
    if not isinstance(kind, str):
        raise UsageError("An event needs a type: a string.")
    return Event(kind, data)


def _object(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(str(text, "utf-8"))
    except (ValueError, RecursionError):
        raise UsageError("An event is a line of JSON in UTF-8; this was none.") from None
    if not isinstance(found, dict):
        raise UsageError("An event is a JSON object; this was none.")
    return found


def _length(header: Mapping[str, Any], name: str, most: int) -> int:
    value = header.get(name)
    if value is None:
        return 0
    if type(value) is not int or value < 0:
        raise UsageError(f"{name} must be a whole number, at least 0.")
    if value > most:
        raise UsageError(f"{name} must be at most {most:,} here.")
    return value


# ---- asking


def text_of(data: Mapping[str, Any]) -> str:
    """Raises UsageError."""
    text = data.get("text")
    if not isinstance(text, str):
        raise UsageError(f"The event needs a text: a string, not {type(text).__name__}.")
    return text


def asked_of(data: Mapping[str, Any], voice: Voice, aliases: Mapping[str, str]) -> SpeechRequest:
    """Who speaks, and in which language: a request without its text. A voice's name overrides a language.

    Raises UsageError that names the valid choices.
    """
    style = data.get("text_format")
    if style not in (None, "text"):
        raise UsageError(f"text_format {str(style)[:100]!r} is not read here, plain text only.")
    asked = data.get("voice")
    if asked is None:
        asked = {}
    if not isinstance(asked, dict):
        raise UsageError("voice must be an object with a name or a language.")
    name, language = asked.get("name"), asked.get("language")
    if name is not None:
        if not isinstance(name, str):
            raise UsageError("The voice's name must be a string.")
        found = local_voice(name, voice, aliases)
        own = [info.name for info in voice.voices]
        if found is not None and found.lower() not in map(str.lower, own):
            raise choose("voice", name, [*own, *aliases])
        return SpeechRequest("", voice=found)
    if language is None:
        return SpeechRequest("")
    if not isinstance(language, str):
        raise UsageError("The voice's language must be a string.")
    return _by_language(language, voice)


def _by_language(asked: str, voice: Voice) -> SpeechRequest:
    lowered = asked.lower()
    tag = lowered.replace("_", "-").partition("-")[0]
    language = next((own for own in voice.languages if lowered == own.lower() or tag == _tag(own)), None)
    if language is None:
        raise choose("language", asked, dict.fromkeys(map(_tag, voice.languages)))
    native = next((v.name for v in voice.voices if v.language is not None and _tag(v.language) == _tag(language)), None)
    return SpeechRequest("", voice=native, language=language)


# ---- answering


def info_of(voice: Voice, aliases: Mapping[str, str]) -> Info:
    """What `describe` is answered with. Not `installed`: a model that has no voices to offer by name."""
    own = {v.name: v for v in voice.voices}
    voices = [_described(v.name, v, voice) for v in own.values()]
    voices += [_described(alias, own[name], voice) for alias, name in aliases.items() if name in own and alias not in own]
    program = TtsProgram(
        name="ouzel",
        attribution=Attribution("ouzel", ""),
        installed=bool(voices),
        description=f"Speech made on this device, model {voice.name}",
        version=metadata.version("ouzel"),
        voices=voices,
        supports_synthesize_streaming=True,
    )
    return Info(tts=[program])


def _described(name: str, info: VoiceInfo, voice: Voice) -> TtsVoice:
    """Home Assistant shows the description in place of the name, so the name is in it."""
    who = info.name if name == info.name else f"{name} ({info.name})"
    tags = [_tag(language) for language in (info.language, *voice.languages) if language not in (None, _AUTO)]
    return TtsVoice(
        name=name,
        attribution=Attribution(info.origin or voice.name, ""),
        installed=True,
        description=f"{who}: {info.description}" if info.description else who,
        version=None,
        languages=list(dict.fromkeys(tags)) or [_ANY],
    )


def error_event(error: BaseException) -> Event:
    """code: the type of the same error over HTTP."""
    problem = api_error_of(error)
    return Error(clean(problem.message), problem.error["type"]).event()


def clean(text: str) -> str:
    """What of a client's text can be sent back: half surrogates cannot be."""
    return text.encode("utf-8", "replace").decode()


def _tag(language: str) -> str:
    return _TAGS.get(language.lower(), language.lower())
