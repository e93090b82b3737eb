"""Typed reading of a parsed YAML mapping: a wrong type is an error that names the file, the key and the expected type."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from ouzel.errors import ConfigError, choose

_MISSING = object()


class Reader:
    """One mapping, where it comes from (`where`: a file or "command line") and its path in there.

    A key that is absent or null reads as the default, except where the method says otherwise.
    """

    def __init__(self, where: str, data: object, path: str = "") -> None:
        self.where = where
        self.path = path
        if not isinstance(data, Mapping):
            raise ConfigError(f"{where}: {path or 'the document'} must be a mapping of keys to values, found {_show(data)}.")
        for key in data:
            if not isinstance(key, (str, int)) or isinstance(key, bool):
                raise ConfigError(f"{where}: key {key!r} in {path or 'the document'} must be a name.")
        self.data: Mapping[Any, Any] = data

    def at(self, key: object) -> str:
        """Path of `key` as error messages show it."""
        return f"{self.path}.{key}" if self.path else str(key)

    def fault(self, key: object, expected: str, value: object) -> ConfigError:
        return ConfigError(f"{self.where}: {self.at(key)} must be {expected}, found {_show(value)}.")

    def keys(self) -> tuple[str, ...]:
        return tuple(str(key) for key in self.data)

    def only(self, kind: str, valid: Iterable[str]) -> None:
        """Raise ConfigError for the first key that is not in `valid`."""
        names = tuple(valid)
        for key in self.data:
            if key not in names:
                error = choose(kind, key, names, error=ConfigError)
                raise ConfigError(f"{self.where}: {self.path + ': ' if self.path else ''}{error}")

    def raw(self, key: str) -> Any:
        return self.data.get(key)

    def boolean(self, key: str, default: bool) -> bool:
        value = self.data.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.fault(key, "true or false", value)
        return value

    def integer(self, key: str, default: int | None = None, *, minimum: int | None = None) -> int | None:
        value = self.data.get(key)
        if value is None:
            return default
        expected = "a whole number" if minimum is None else f"a whole number of at least {minimum}"
        if not isinstance(value, int) or isinstance(value, bool) or (minimum is not None and value < minimum):
            raise self.fault(key, expected, value)
        return value

    def number(self, key: str, default: float, *, minimum: float | None = None, above: float | None = None) -> float:
        value = self.data.get(key)
        if value is None:
            return default
        expected = "a number" + (
            f" of at least {minimum:g}" if minimum is not None else f" above {above:g}" if above is not None else ""
        )
        if not isinstance(value, (int, float)) or isinstance(value, bool) or abs(value) > sys.float_info.max or math.isnan(value):
            raise self.fault(key, expected, value)
        if (minimum is not None and value < minimum) or (above is not None and value <= above):
            raise self.fault(key, expected, value)
        return float(value)

    def text(self, key: str, default: str | None = None, *, choices: tuple[str, ...] = ()) -> str | None:
        value = self.data.get(key, _MISSING)
        if value is _MISSING or value is None:
            return default
        expected = f"one of {', '.join(choices)}" if choices else "text"
        if not isinstance(value, str) or (choices and value not in choices) or not value:
            raise self.fault(key, expected, value)
        return value

    def mapping(self, key: str) -> Reader | None:
        value = self.data.get(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self.fault(key, "a mapping of keys to values", value)
        return Reader(self.where, value, self.at(key))

    def items(self, key: str) -> list[Reader]:
        """The list under `key`, each element a mapping."""
        value = self.data.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.fault(key, "a list", value)
        return [Reader(self.where, item, f"{self.at(key)}[{index}]") for index, item in enumerate(value)]


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
