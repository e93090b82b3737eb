"""What `ouzel voices` says about the built-in voices: voices.json of a checkpoint or bundle, which the published ones lack.

It maps a voice's name to its `language`, `description`, `licence` and `origin`: texts, each optional.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from ...errors import OuzelError, choose
from ...request import VoiceInfo
from .config import TalkerConfig

VOICES = "voices.json"
_ABOUT = tuple(f.name for f in fields(VoiceInfo) if f.name != "name")


def voices_of(talker: TalkerConfig, about: Any, where: str, error: type[OuzelError]) -> tuple[VoiceInfo, ...]:
    """The checkpoint's voices in its order, with what `about` (voices.json) says of them; `error` names what is wrong in it."""
    found = {name: VoiceInfo(name, language=str(talker.spk_is_dialect.get(name) or "") or None) for name in talker.spk_id}
    if not isinstance(about, Mapping):
        raise error(f"{where} must hold a mapping, found {type(about).__name__}.")
    for name, entry in about.items():
        if name not in found:
            raise choose(f"voice in {where}", name, found, error=error)
        if not isinstance(entry, Mapping):
            raise error(f"{where}: {name!r} must be a mapping, got {type(entry).__name__}.")
        for key, text in entry.items():
            if key not in _ABOUT:
                raise choose(f"key of {name!r} in {where}", key, _ABOUT, error=error)
            if not isinstance(text, str):
                raise error(f"{where}: {key} of {name!r} must be a text, got {text!r}.")
        found[name] = replace(found[name], **entry)
    return tuple(found.values())
