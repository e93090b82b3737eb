"""The user's bundles: what lies in the models folder, and which one a `-m` or `load()` means."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from ouzel.bundle.bundle import is_bundle, read_manifest
from ouzel.bundle.folders import models_folder
from ouzel.bundle.manifest import Manifest
from ouzel.errors import BundleError, choose

_GET_ONE = "`ouzel pull REPO` fetches one, `ouzel convert CHECKPOINT OUT` makes one"


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A bundle folder of the store; manifest is None and `problem` says why when it cannot be read."""

    name: str
    path: Path
    manifest: Manifest | None
    problem: str = ""


def list_models() -> list[StoredModel]:
    """The bundles in the models folder and the one inside the package, by name; files are not verified."""
    found: list[StoredModel] = []
    embedded = embedded_bundle()
    folder = models_folder()
    try:
        paths = sorted(folder.iterdir()) if os.path.isdir(folder) else []
    except OSError as err:
        raise BundleError(f"The models folder {folder} cannot be read ({err.strerror or err}).") from err
    for path in [*([embedded] if embedded else []), *paths]:
        if not is_bundle(path) or path.suffix in (".partial", ".replaced"):
            continue
        try:
            found.append(StoredModel(path.name, path, read_manifest(path)))
        except BundleError as error:
            found.append(StoredModel(path.name, path, None, str(error)))
    return found


def embedded_bundle() -> Path | None:
    """The bundle shipped inside the package, if this build has one."""
    path = Path(str(files("ouzel"))) / "voices" / "embedded"
    return path if is_bundle(path) else None


def resolve_model(spec: str | Path | None = None) -> Path:
    """The bundle folder that `spec` means: a folder, or a name in the store (any case).

    None: $OUZEL_MODEL, else the bundle named "default" in the store, else its only one, else the bundle inside the package.
    Raises BundleError that names the choices and how to get a bundle.
    """
    if spec is None:
        return _default()
    text = str(spec)
    if not text.strip():
        raise BundleError("The model is empty; give a bundle folder or a name that `ouzel models` lists.")
    path = Path(os.path.expanduser(text))
    if len(path.parts) > 1 and os.path.isdir(path):  # needs no models folder, nor a home
        read_manifest(path)  # its error says what the folder is instead
        return path
    models = list_models()
    by_name = {m.name.casefold(): m.path for m in models}
    if len(path.parts) == 1 and text.casefold() in by_name and not is_bundle(path):
        return by_name[text.casefold()]
    if os.path.isdir(path):
        read_manifest(path)
        return path
    if len(path.parts) > 1:
        raise BundleError(f"There is no folder {path}; give a bundle folder or a name that `ouzel models` lists ({_GET_ONE}).")
    if not models:
        raise BundleError(f"Unknown model {text!r}: there are no models in {models_folder()} yet; {_GET_ONE}.")
    raise choose("model", text, [m.name for m in models], error=BundleError)


def _default() -> Path:
    named = os.environ.get("OUZEL_MODEL")
    if named:
        return resolve_model(named)
    embedded = embedded_bundle()
    stored = [m for m in list_models() if m.path != embedded]
    for model in stored:
        if model.name == "default":
            return model.path
    if len(stored) == 1:
        return stored[0].path
    if not stored and embedded:
        return embedded
    if stored:
        names = ", ".join([*(m.name for m in stored), *([embedded.name] if embedded else [])])
        raise BundleError(f"Which model? Give -m NAME or set OUZEL_MODEL. Valid choices: {names}.")
    raise BundleError(f"No model is installed in {models_folder()}; {_GET_ONE}.")
