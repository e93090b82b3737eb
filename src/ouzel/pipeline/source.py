"""Deploy files on disk: names, YAML text, base_config chains; what comes out is one parsed mapping."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import yaml

from ouzel.errors import ConfigError
from ouzel.pipeline import merge
from ouzel.pipeline.merge import Raw
from ouzel.pipeline.reader import Reader

DEPLOY_DIR = Path(__file__).resolve().parent.parent / "deploy"


MAX_VALUES = 20_000


def bundled() -> tuple[str, ...]:
    """Names of the deploy files that come with the package."""
    return tuple(sorted(path.stem for path in DEPLOY_DIR.glob("*.yaml")))


def find(name: str | Path) -> Path:
    """A path as given, or a bare name (with or without .yaml) among the bundled files. ConfigError lists the bundled names."""
    path = Path(name)
    if os.path.isfile(path):
        return path
    if path.parent == Path() and path.name:
        candidate = DEPLOY_DIR / (path.name if path.name.endswith(".yaml") else f"{path.name}.yaml")
        if os.path.isfile(candidate):
            return candidate
    raise ConfigError(f"No deploy file {str(name)!r}. Give a path, or a bundled name: {', '.join(bundled()) or 'none'}.")


def read_chain(path: Path, check: Callable[[Raw, str], None]) -> Raw:
    """The file at `path` on top of its base_config files. `check(parsed, file)` sees each file alone, before they are merged."""
    return _read(path, check, ())


def _read(path: Path, check: Callable[[Raw, str], None], seen: tuple[Path, ...]) -> Raw:
    here = path.resolve()
    if here in seen:
        raise ConfigError(f"base_config goes in a circle: {' -> '.join(p.name for p in (*seen, here))}.")
    raw = parse(path)
    check(raw, str(path))
    base = Reader(str(path), raw).text("base_config")
    raw.pop("base_config", None)
    if base is None:
        return raw
    below = path.parent / base
    if not os.path.isfile(below) and Path(base).parent == Path():
        below = DEPLOY_DIR / base  # a bundle's own file stands on one of the package's
    if not os.path.isfile(below):
        raise ConfigError(f"{path}: base_config {base!r} does not exist (looked for {path.parent / base}).")
    return merge.documents(_read(below, check, (*seen, here)), raw)


def parse(path: Path) -> Raw:
    """One YAML document as plain Python values; an empty file is an empty mapping. Raises ConfigError with line and column."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    data = value(text, str(path))
    return {} if data is None else dict(Reader(str(path), data).data)


def value(text: str, where: str) -> Any:
    """YAML text as plain Python values. Raises ConfigError that names `where` and, for bad syntax, line and column."""
    try:
        data = yaml.load(text, Loader=_Loader)
        if _size(data, {}) > MAX_VALUES:
            raise ConfigError(f"{where} has more than {MAX_VALUES:,} values; that is no deploy file.")
        _refuse_interpolation(data, where)
    except yaml.YAMLError as error:
        raise ConfigError(f"{where} is not valid YAML: {' '.join(str(error).split())}.") from error
    except (ValueError, IndexError, KeyError) as error:  # PyYAML's, for such as !!int "" or a number of 5,000 digits
        raise ConfigError(f"{where} has a value that does not fit its YAML type ({error}).") from error
    except RecursionError as error:
        raise ConfigError(f"{where} is nested too deep, or contains itself.") from error
    return data


def _size(data: Any, known: dict[int, int]) -> int:
    """Number of values with aliases written out; each shared one is walked once, so that a small file cannot blow up."""
    items = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    if id(data) not in known or not items:
        known[id(data)] = 1 + sum(_size(item, known) for item in items)
    return known[id(data)]


def _refuse_interpolation(data: Any, where: str) -> None:
    if isinstance(data, str) and "${" in data:
        raise ConfigError(f"{where}: {data!r} asks for interpolation, which is not supported here; write the value itself.")
    for item in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        _refuse_interpolation(item, where)


class _Loader(yaml.SafeLoader):
    """Plain YAML types, read as the server's loader reads them: no repeated keys, 1e-3 is a number, dates stay text."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is repeated", key_node.start_mark)
            if isinstance(key, Hashable):
                seen.add(key)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in pairs if tag != "tag:yaml.org,2002:timestamp"]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)
