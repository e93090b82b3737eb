"""A command's options in a YAML file: each by its name, flags win over the file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from ouzel.cli.options import Parser, natural_int, positive_int
from ouzel.errors import ConfigError
from ouzel.pipeline.reader import Reader
from ouzel.pipeline.source import parse
from ouzel.serve.keys import check_secret

_LEAST = {positive_int: 1, natural_int: 0}
_OWN = ("help", "config")
_BESIDE = ("api_key_file", "allowed_local_media_path")
_PATHS = ("model", "deploy_config", *_BESIDE)


def configured(args: argparse.Namespace) -> argparse.Namespace:
    """`args` with what the file --config says where the command line says nothing; a list that it gives replaces the file's.

    Raises ConfigError, which names the file, the key and what would be valid.
    """
    if args.config is None:
        return args
    parser: Parser = args.parser
    values = read_settings(Path(args.config), parser)
    # What is in the namespace already is not set to its default; lists would be added to, though.
    lists = {name: value for name, value in values.items() if isinstance(value, list)}
    first = argparse.Namespace(**{name: value for name, value in values.items() if name not in lists})
    found, _ = parser.parse_known_args(args.given[1:], first)
    for name, value in lists.items():
        if not getattr(found, name):
            setattr(found, name, value)
    found.stages = args.stages
    return found


def read_settings(path: Path, parser: Parser) -> dict[str, Any]:
    """Name of an option, as argparse has it -> its value, checked as far as the option's type goes. Raises ConfigError.

    Keys may be written with - or _. Files that it names lie beside it, unless their path is absolute.
    """
    raw: dict[str, Any] = {}
    for key, value in parse(path).items():
        name = str(key).replace("-", "_")
        if name in raw:
            raise ConfigError(f"{path}: {name} is there twice, with - and with _.")
        raw[name] = value
    reader = Reader(str(path), raw)
    actions = {action.dest: action for action in parser._actions if action.dest not in _OWN}
    reader.only("setting", actions)
    if raw.get("api_key"):
        check_secret(path)
    values = {name: _value(reader, name, actions[name]) for name, value in raw.items() if value is not None}
    for name in _PATHS:
        beside = path.parent / str(values.get(name))
        # A model or a deploy file may also be one that ouzel knows by name.
        if name in values and (name in _BESIDE or beside.exists()):
            values[name] = str(beside)
    return values


def _value(reader: Reader, name: str, action: argparse.Action) -> Any:
    if name == "stage_overrides":
        block = reader.mapping(name)
        return None if block is None else json.dumps(block.data)
    if name == "voice_alias":
        aliases = reader.mapping(name)
        return [] if aliases is None else [f"{alias}={aliases.text(alias, '')}" for alias in aliases.data]
    if action.nargs == 0:
        return reader.boolean(name, False)
    if isinstance(action, argparse._AppendAction):
        found = reader.raw(name)
        if not isinstance(found, list) or not all(isinstance(text, str) and text for text in found):
            raise reader.fault(name, "a list of texts", "something else" if name == "api_key" else found)
        return found
    if action.type in _LEAST:
        return reader.integer(name, minimum=_LEAST[action.type])
    text = reader.text(name, "", choices=tuple(action.choices or ()))
    if not callable(action.type):
        return text
    try:
        return action.type(str(text))
    except (argparse.ArgumentTypeError, ValueError) as error:
        raise ConfigError(f"{reader.where}: {name}: {error}.") from error
