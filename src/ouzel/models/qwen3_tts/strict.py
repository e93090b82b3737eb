"""Reading a frozen dataclass out of a JSON object: every field must be there, with its type; nothing is filled in."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from ...errors import CheckpointError

T = TypeVar("T")


def load_json(path: Path) -> dict[str, Any]:
    """The JSON object in `path`; CheckpointError when the file is missing, not JSON or not an object."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise CheckpointError(f"{path} cannot be read ({e.strerror}); a Qwen3-TTS checkpoint has this file.") from e
    except (ValueError, RecursionError) as e:
        raise CheckpointError(f"{path} is not valid JSON ({e}); download it again.") from e
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} must hold a JSON object, but holds a {type(value).__name__}.")
    return value


def read(kind: type[T], source: Mapping[str, Any], where: str) -> T:
    """Build dataclass `kind` from `source`. Keys of `source` that `kind` does not have are other programs' business.

    Raises CheckpointError naming every missing key, or the first key of a wrong type. `where` prefixes the names.
    """
    if not isinstance(source, Mapping):
        raise CheckpointError(f"{where} must be a JSON object, but is {source!r}.")
    hints = get_type_hints(kind)
    description: Any = kind  # what `T` cannot say: a dataclass
    fields = [f for f in dataclasses.fields(description) if f.init]
    missing = [f.name for f in fields if f.name not in source]
    if missing:
        raise CheckpointError(f"{where} lacks {', '.join(missing)}; Ouzel never guesses a dimension or an id.")
    return kind(**{f.name: _value(hints[f.name], source[f.name], f"{where}: {f.name}") for f in fields})


def _value(hint: Any, value: Any, where: str) -> Any:
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return read(hint, value, where)
    origin, args = get_origin(hint), get_args(hint)
    if origin is tuple and isinstance(value, list):
        return tuple(_value(args[0], v, where) for v in value)
    if origin is dict and isinstance(value, Mapping):
        return {str(k): _value(args[1], v, f"{where}.{k}") for k, v in value.items()}
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    options = tuple(a for a in args if isinstance(a, type)) if origin not in (tuple, dict) and args else (hint,)
    for option in options:
        if isinstance(option, type) and isinstance(value, option) and (option is bool or not isinstance(value, bool)):
            return value
    raise CheckpointError(f"{where} must be {_name(hint)}, but is {value!r}.")


def _name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
