"""A checkpoint made into a bundle: from a local folder, or fetched from the hub first."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from ouzel.bundle import BundleWriter, open_bundle
from ouzel.bundle.bundle import is_bundle
from ouzel.bundle.fetch import Fetched, fetch, split_repo
from ouzel.bundle.folders import models_folder
from ouzel.bundle.hub import Hub
from ouzel.bundle.place import check_replaceable, swap_in
from ouzel.bundle.progress import Progress, part, silent
from ouzel.bundle.verify import file_sha256
from ouzel.errors import CheckpointError, MissingExtraError, OuzelError, UsageError, choose
from ouzel.models.registry import recognise_family
from ouzel.runtimes.registry import get_runtime
from ouzel.unfinished import Unfinished

WEIGHTS = ("fp32", "int8", "int4")
DECODERS = ("fp32", "fp16", "int8")
_NEEDED = ("torch", "safetensors")
_STATED = ("ouzel", "torch", "onnx", "onnxruntime", "numpy")


def convert(
    checkpoint: str | Path,
    out: str | Path,
    *,
    runtime: str = "onnxruntime",
    weights: str = "int4",
    decoder: str = "fp32",
    force: bool = False,
    source: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> Path:
    """Make the bundle folder `out` of a checkpoint folder in Hugging Face layout; returns its path.

    weights: of the talker and the code predictor. decoder: how the codec decoder's weights are stored; it computes in float32
    whatever this says. source: facts on where the checkpoint came from, kept in the manifest beside the checksums of its files.
    On any error nothing is left of `out`. Raises CheckpointError, UsageError, MissingExtraError (torch is not installed) or
    OuzelError (no room, no memory).
    """
    folder = Path(os.path.expanduser(checkpoint))
    _check_weights(weights, decoder)
    family = recognise_family(_read_config(folder))
    target = get_runtime(runtime)
    _check_extra()
    with BundleWriter(out, force, part(progress, 0.92, 1.0)) as writer:
        progress("reading the checkpoint", 0.0)
        writer.describe(name=writer.out.name, family=family.name)
        loaded = family.read_checkpoint(folder)
        writer.source.update(
            {"name": folder.resolve().name, **(source or {})}, files=_checksums(folder, part(progress, 0.0, 0.08))
        )
        try:
            family.write_frontend(loaded, writer, weights, part(progress, 0.08, 0.2))
            progress("building the networks", 0.2)
            networks = family.networks(loaded)
            del loaded
            target.convert(networks, writer, weights, decoder, part(progress, 0.25, 0.92))
        except MemoryError:
            raise OuzelError(
                f"Not enough memory to convert {folder}; close other programs or convert on a larger machine."
            ) from None
        writer.versions.update(_versions())
        for artifact in reversed(writer.artifacts):
            writer.placement[artifact.stage] = {"runtime": artifact.runtime, "weights": artifact.weights}
    progress("done", 1.0)
    return writer.out


def pull(
    spec: str,
    *,
    out: str | Path | None = None,
    endpoint: str | None = None,
    token: str | None = None,
    runtime: str = "onnxruntime",
    weights: str = "int4",
    decoder: str = "fp32",
    keep: bool = False,
    force: bool = False,
    progress: Progress = silent,
) -> Path:
    """Fetch repository `spec` ("OWNER/NAME[@REVISION]") and return the path of a bundle made of it.

    A repository that holds a bundle is taken as it is; a checkpoint is converted as `convert` does. out: None = the models
    folder, under the repository's name (plus the weights, for a converted one). keep: leave the download there.
    Interrupted downloads are resumed by calling again. Raises what `ouzel.bundle.fetch.fetch` and `convert` raise.
    """
    split_repo(spec)
    _check_weights(weights, decoder)
    suffix = f"-{weights}" if decoder == "fp32" else f"-{weights}-decoder-{decoder}"
    get_runtime(runtime)
    hub = Hub(endpoint, token)

    def check(config: Mapping[str, Any]) -> None:
        recognise_family(config)
        _check_extra()
        _check_free(final(suffix), force)

    def final(ending: str) -> Path:
        return Path(os.path.expanduser(out)) if out is not None else models_folder() / f"{_short_name(spec)}{ending}"

    got = fetch(spec, hub, check=check, progress=part(progress, 0.0, 0.5))
    if got.is_bundle:
        place = final("")
        _check_free(place, force)
        open_bundle(got.folder)
        _move_in(got.folder, place)
        open_bundle(place)
    else:
        place = final(suffix)
        place.parent.mkdir(parents=True, exist_ok=True)
        convert(
            got.folder,
            place,
            runtime=runtime,
            weights=weights,
            decoder=decoder,
            force=force,
            source={"name": _short_name(spec), "repo": got.repo, "commit": got.commit},
            progress=part(progress, 0.5, 1.0),
        )
    if not keep:
        _forget(got)
    progress("done", 1.0)
    return place


def _check_weights(weights: str, decoder: str) -> None:
    if weights not in WEIGHTS:
        raise choose("weights", weights, WEIGHTS)
    if decoder not in DECODERS:
        raise choose("decoder weights", decoder, DECODERS)


def _read_config(folder: Path) -> Mapping[str, Any]:
    if not os.path.isdir(folder):
        raise CheckpointError(f"{folder} is not a folder; `ouzel pull OWNER/NAME` fetches a checkpoint from the hub.")
    path = folder / "config.json"
    if is_bundle(folder):
        raise CheckpointError(f"{folder} is already a bundle.")
    if not os.path.isfile(path):
        raise CheckpointError(f"{folder} is not a checkpoint: it has no config.json.")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as err:
        raise CheckpointError(f"{path} cannot be read ({err}).") from None
    if not isinstance(config, dict):
        raise CheckpointError(f"{path} must hold a mapping, found {type(config).__name__}.")
    return config


def _check_extra() -> None:
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"Converting needs {' and '.join(missing)}; install it with: pip install 'ouzel[convert]'.")


def _check_free(place: Path, force: bool) -> None:
    """Say that the place is taken before gigabytes are fetched for it."""
    check_replaceable(place)
    if os.path.lexists(place) and not force:
        raise UsageError(f"{place} exists; choose another place with --out or pass --force to replace it.")


def _checksums(folder: Path, progress: Progress) -> dict[str, str]:
    paths = sorted(p for p in folder.rglob("*") if p.suffix == ".safetensors" or p.name == "config.json")
    sums: dict[str, str] = {}
    for index, path in enumerate(paths):
        progress("checksums of the checkpoint", index / len(paths))
        sums[path.relative_to(folder).as_posix()] = file_sha256(path)
    return sums


def _versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in _STATED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _short_name(spec: str) -> str:
    return spec.partition("@")[0].rpartition("/")[2]


def _move_in(folder: Path, place: Path) -> None:
    """Make a verified download the bundle `place`, replacing one that is there; on the same disk this is a rename."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with Unfinished.beside(place) as moved:
            shutil.move(folder, moved.path)
            swap_in(moved.path, place)
    except OSError as err:
        raise OuzelError(f"Cannot write {place} ({err.strerror or err}).") from err


def _forget(got: Fetched) -> None:
    shutil.rmtree(got.folder, ignore_errors=True)
    if got.folder.parent.is_dir() and not any(got.folder.parent.iterdir()):
        got.folder.parent.rmdir()
