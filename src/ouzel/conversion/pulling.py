"""A model fetched from the hub: a bundle as it is, a checkpoint converted."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ouzel.bundle import open_bundle
from ouzel.bundle.fetch import Fetched, fetch, split_repo
from ouzel.bundle.folders import models_folder
from ouzel.bundle.hub import Hub
from ouzel.bundle.place import check_replaceable, swap_in
from ouzel.bundle.progress import Progress, part, silent
from ouzel.conversion.make import check_extra, convert
from ouzel.conversion.targets import DEFAULT, Target, Weights, check_complete, targets
from ouzel.errors import OuzelError, UsageError
from ouzel.models.registry import recognise_family
from ouzel.unfinished import Unfinished


def pull(
    spec: str,
    *,
    out: str | Path | None = None,
    endpoint: str | None = None,
    token: str | None = None,
    runtime: str | Sequence[str] = DEFAULT,
    weights: Weights = None,
    decoder: Weights = None,
    backend: str | None = None,
    keep: bool = False,
    force: bool = False,
    progress: Progress = silent,
) -> Path:
    """Fetch repository `spec` ("OWNER/NAME[@REVISION]") and return the path of a bundle made of it.

    A repository that holds a bundle is taken as it is; a checkpoint is converted as `convert` does. out: None = the models
    folder, under the repository's name (plus, for a converted one, the weights and the runtimes if not just the usual one).
    keep: leave the download there.
    Interrupted downloads are resumed by calling again. Raises what `ouzel.bundle.fetch.fetch` and `convert` raise.
    """
    split_repo(spec)
    found = targets(runtime, weights, decoder, backend)
    check_complete(found)
    suffix = f"-{_label(found)}"
    hub = Hub(endpoint, token)

    def check(config: Mapping[str, Any]) -> None:
        recognise_family(config)
        check_extra()
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
            backend=backend,
            force=force,
            source={"name": _short_name(spec), "repo": got.repo, "commit": got.commit},
            progress=part(progress, 0.5, 1.0),
        )
    if not keep:
        _forget(got)
    progress("done", 1.0)
    return place


def _check_free(place: Path, force: bool) -> None:
    """Say that the place is taken before gigabytes are fetched for it."""
    check_replaceable(place)
    if os.path.lexists(place) and not force:
        raise UsageError(f"{place} exists; choose another place with --out or pass --force to replace it.")


def _label(found: Sequence[Target]) -> str:
    usual = len(found) == 1 and found[0].runtime.name == DEFAULT
    return "-".join(target.label if usual else f"{target.runtime.name}-{target.label}" for target in found)


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
