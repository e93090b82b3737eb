"""Model families by name: built in, from entry points `ouzel.models`, or registered at run time."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ouzel.errors import CheckpointError, ConfigError, OuzelError
from ouzel.models.base import Family
from ouzel.plugins import Registry

log = logging.getLogger("ouzel.models")


def _check(family: Family) -> None:
    if not isinstance(family, Family):
        raise ConfigError(f"The model family object {family!r} does not offer what ouzel.models.base.Family asks for.")


# Found without installed entry points too (a source tree on PYTHONPATH, a frozen application).
_FAMILIES: Registry[Family] = Registry(
    "model family", {"qwen3_tts": "ouzel.models.qwen3_tts:FAMILY"}, group="ouzel.models", check=_check
)


def families() -> tuple[str, ...]:
    """Names of all known families, sorted; imports none of them."""
    return _FAMILIES.names()


def get_family(name: str) -> Family:
    """The family called `name`. Raises UsageError for an unknown name, ConfigError for a broken plug-in."""
    return _FAMILIES.get(name)


def register_family(family: Family, *, name: str | None = None) -> None:
    """Make `family` known under its name (or `name`); replacing one logs a warning."""
    _FAMILIES.register(name or family.name, family)


def unregister_family(name: str) -> None:
    """Undo `register_family`."""
    _FAMILIES.unregister(name)


def recognise_family(config: Mapping[str, Any]) -> Family:
    """The family whose `recognises` accepts a parsed config.json.

    A broken plug-in is logged by name and passed over, so that it cannot block the others. CheckpointError if none accepts.
    """
    for name in families():
        try:
            family = get_family(name)
        except OuzelError as error:
            log.warning("%s", error)
            continue
        if family.recognises(config):
            return family
    raise CheckpointError(
        f"This checkpoint (model_type {config.get('model_type')!r}) is of no known model family. Known: {', '.join(families())}."
    )
