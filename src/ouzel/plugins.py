"""Named things that may live in other packages: found by name, imported on first use, broken ones reported by name."""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Generic, TypeVar, cast

from ouzel.errors import ConfigError, OuzelError, choose

T = TypeVar("T")
log = logging.getLogger("ouzel.plugins")


def load_target(target: str, what: str) -> object:
    """Import "module:attr" (attr may be dotted). Raises ConfigError that names `what` and the cause.

    OuzelErrors pass through unchanged: a plug-in that misses an extra already says which one.
    """
    module_name, _, attribute = target.partition(":")
    if not module_name or not attribute:
        raise ConfigError(f"The {what} is given as {target!r}; write it as 'package.module:attribute'.")
    try:
        found: object = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except OuzelError:
        raise
    except Exception as error:  # whatever a foreign module raises on import is reported with its name
        raise ConfigError(f"The {what} ({target}) could not be loaded: {type(error).__name__}: {error}") from error
    return found


class Registry(Generic[T]):
    """name -> object, from a static table, from entry points of `group`, or registered at run time.

    Precedence: registered, built-in, entry point. An entry point that claims a taken name is ignored with a warning.
    `check` raises an OuzelError for an object that is not what it should be.
    """

    def __init__(
        self, kind: str, builtins: Mapping[str, str], *, group: str = "", check: Callable[[T], None] | None = None
    ) -> None:
        self._kind = kind
        self._group = group
        self._check = check
        self._builtins = dict(builtins)
        self._registered: dict[str, T | str] = {}
        self._loaded: dict[str, T] = {}
        self._entry_points: dict[str, str] | None = None
        self._lock = threading.RLock()

    def register(self, name: str, item: T | str) -> None:
        """Add `item` (the object, or "module:attr" imported on first use); replacing another one logs a warning."""
        with self._lock:
            if name in self._registered or name in self._targets():
                log.warning("%s %r is registered again and replaces the previous one", self._kind, name)
            self._registered[name] = item
            self._loaded.pop(name, None)

    def unregister(self, name: str) -> None:
        """Undo `register`; a name that was not registered is left alone."""
        with self._lock:
            if self._registered.pop(name, None) is not None:
                self._loaded.pop(name, None)

    def names(self) -> tuple[str, ...]:
        """Every known name, sorted; imports nothing."""
        with self._lock:
            return tuple(sorted({*self._registered, *self._targets()}))

    def get(self, name: str) -> T:
        """The object called `name`. Unknown name: errors.choose; broken one: ConfigError with its name and cause."""
        with self._lock:
            if name in self._loaded:
                return self._loaded[name]
            target: T | str
            if name in self._registered:
                target = self._registered[name]
            elif name in self._targets():
                target = self._targets()[name]
            else:
                raise choose(self._kind, name, self.names())
            item = cast("T", load_target(target, f"{self._kind} {name!r}")) if isinstance(target, str) else target
            if self._check is not None:
                self._check(item)
            self._loaded[name] = item
            return item

    def _targets(self) -> dict[str, str]:
        if self._entry_points is None:
            found = dict(self._builtins)
            for point in metadata.entry_points(group=self._group) if self._group else ():
                taken = found.setdefault(point.name, point.value)
                if taken != point.value:
                    log.warning(
                        "%s %r of entry point %s is ignored: the name belongs to %s", self._kind, point.name, point.value, taken
                    )
            self._entry_points = found
        return self._entry_points
