"""Writing a bundle: everything lands in OUT.partial and becomes OUT by one rename, or is removed again."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ouzel.bundle.bundle import Bundle
from ouzel.bundle.manifest import MANIFEST_NAME, TASKS, Artifact, FileEntry, Manifest, safe_path
from ouzel.bundle.place import check_replaceable, claim, clear_leftover, swap_in, unclaim
from ouzel.bundle.progress import Progress, silent
from ouzel.bundle.verify import file_sha256, remember
from ouzel.errors import OuzelError, UsageError, choose
from ouzel.unfinished import Unfinished

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NEARLY_NOTHING = 1 << 20  # bytes free below which a failed write is put down to the full disk


class BundleWriter:
    """Context manager that makes the bundle folder `out`.

    Inside the `with`: `path(rel)` to write files to, `array` and `json` for the common kinds, `add_artifact` for each stage, and
    `describe` once. On a clean exit files are hashed, the manifest written and the folder renamed; on any error, Ctrl-C included,
    nothing is left. force: replace an existing bundle (never a folder that is not one, or holds other files too) and the
    OUT.partial of a run that was killed. base: the bundle at `out`, opened and verified; everything in it is kept but what `drop`
    takes out.
    """

    def __init__(self, out: str | Path, force: bool = False, progress: Progress = silent, *, base: Bundle | None = None) -> None:
        self.out = Path(os.path.expanduser(out)).absolute()
        if not self.out.name or any("\ud800" <= c <= "\udfff" for c in str(self.out)):  # native libraries take UTF-8 paths
            raise UsageError(f"{out} cannot be the folder of a bundle; give a name in UTF-8 characters.")
        self.root = self.out.with_name(self.out.name + ".partial")
        self.versions: dict[str, str] = {}
        self.source: dict[str, Any] = {}
        self.placement: dict[str, Any] = {}
        self._force = force
        self._progress = progress
        self._texts: dict[str, str] = {"name": self.out.name}
        self._artifacts: list[Artifact] = []
        self._claimed: Unfinished | None = None
        self._base = base
        self._kept: dict[str, FileEntry] = {}
        self._folders: dict[str, str] = {}

    def __enter__(self) -> Self:
        if os.path.lexists(self.out):
            check_replaceable(self.out)
            if not self._force and self._base is None:
                raise UsageError(f"{self.out} exists; choose another place or pass --force to replace it.")
        if os.path.lexists(self.root):
            if not self._force:
                raise UsageError(f"{self.root} exists: another conversion is at work or was killed; pass --force to remove it.")
            clear_leftover(self.root)
        try:
            self._claimed = claim(self.root)
        except OSError as err:
            raise UsageError(f"Cannot write to {self.out.parent} ({err.strerror or err}); choose another place.") from None
        if self._base is not None:
            self._keep(self._base)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if error is None:
                self._finish()
                return
            if self._disk_full(error):
                raise self._full_error() from error
        except OSError as err:
            if self._disk_full(err):
                raise self._full_error() from err
            raise OuzelError(f"Writing {self.out} failed: {err.strerror or err}.") from err
        finally:
            if self._claimed is not None:
                self._claimed.discard()

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """What has been added so far."""
        return tuple(self._artifacts)

    def describe(
        self,
        *,
        name: str | None = None,
        family: str | None = None,
        tokenizer: str | None = None,
        task: str | None = None,
        notes: str | None = None,
    ) -> None:
        """Set the manifest's texts; may be called several times. family, tokenizer and task must be set by the end."""
        if task is not None and task not in TASKS:
            raise choose("task", task, TASKS)
        given = {"name": name, "family": family, "tokenizer": tokenizer, "task": task, "notes": notes}
        self._texts.update({key: text for key, text in given.items() if text is not None})

    def path(self, rel: str) -> Path:
        """Where to write the file `rel`; its folder exists afterwards. Every file found at the end is listed in the manifest."""
        rel = self._moved(rel)
        path = self.root / rel
        path.parent.mkdir(parents=True, exist_ok=True)
        if self._kept.pop(rel, None) is not None:
            path.unlink(missing_ok=True)  # the base shares it
        return path

    def array(self, rel: str, values: NDArray[Any]) -> None:
        """Write a `.npy` file."""
        try:
            np.save(self.path(rel), values, allow_pickle=False)
        except OSError as err:
            if err.errno is None:  # numpy says "N requested and M written" where the system said that there is no room
                raise OSError(errno.ENOSPC, str(err), str(self.root / rel)) from err
            raise

    def json(self, rel: str, value: Any) -> None:
        """Write a JSON file."""
        self.path(rel).write_text(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")

    def add_artifact(
        self, stage: str, runtime: str, weights: str, files: list[str] | tuple[str, ...], meta: dict[str, Any] | None = None
    ) -> None:
        """State that `files` (first = entry point) carry out `stage` with `runtime`; earlier ones are preferred at load."""
        self._artifacts.append(Artifact(stage, runtime, weights, tuple(self._moved(f) for f in files), meta or {}))

    def drop(self, artifact: Artifact) -> None:
        """Take an artifact out, with those of its files that no other one uses."""
        self._artifacts.remove(artifact)
        for rel in set(artifact.files) - {rel for other in self._artifacts for rel in other.files}:
            self._kept.pop(rel, None)
            (self.root / rel).unlink(missing_ok=True)

    @contextmanager
    def folder_of(self, name: str, instead: str) -> Iterator[None]:
        """While it lasts the folder `name` is called `instead` (or so) in the bundle, if something lies in `name` already."""
        taken = {path.name for path in self.root.iterdir() if path.is_dir() and any(path.iterdir())}
        free = (f"{instead}-{n}" if n > 1 else instead for n in count(1))
        self._folders[name] = next(place for place in chain([name], free) if place not in taken)
        try:
            yield
        finally:
            del self._folders[name]

    def _moved(self, rel: str) -> str:
        first, slash, rest = safe_path(rel, "the converter").partition("/")
        return f"{self._folders.get(first, first)}/{rest}" if slash else rel

    def _keep(self, base: Bundle) -> None:
        manifest = base.manifest
        self._texts.update({key: getattr(manifest, key) for key in ("family", "tokenizer", "task", "notes", "name")})
        self._artifacts[:] = manifest.artifacts
        for kept, found in (
            (self.versions, manifest.versions),
            (self.source, manifest.source),
            (self.placement, manifest.placement),
        ):
            kept.update(found)
        for rel in manifest.files:
            target = self.path(rel)
            try:
                os.link(base.root / rel, target)
            except OSError:  # a file system without links, or a file of another owner
                shutil.copy2(base.root / rel, target)
        self._kept = dict(manifest.files)

    def _finish(self) -> None:
        unset = [key for key in ("family", "tokenizer", "task") if key not in self._texts]
        if unset:
            raise RuntimeError(f"bundle writer: {', '.join(unset)} not described")
        unclaim(self.root)
        files: dict[str, FileEntry] = {}
        paths = sorted(p for p in self.root.rglob("*") if p.is_file())
        for index, path in enumerate(paths):
            self._progress("checksums", index / len(paths))
            rel = path.relative_to(self.root).as_posix()
            files[rel] = self._kept.get(rel) or FileEntry(path.stat().st_size, file_sha256(path))
        self._progress("checksums", 1.0)
        manifest = Manifest(
            name=self._texts["name"],
            family=self._texts["family"],
            tokenizer=self._texts["tokenizer"],
            task=self._texts["task"],
            notes=self._texts.get("notes", ""),
            files=files,
            artifacts=self.artifacts,
            versions=self.versions,
            source=self.source,
            placement=self.placement,
        )
        text = manifest.dump()
        Manifest.parse(text, f"{self.root / MANIFEST_NAME}")
        (self.root / MANIFEST_NAME).write_text(text, encoding="utf-8")
        swap_in(self.root, self.out)
        remember(self.out.resolve(), manifest)  # hashed a moment ago: the first start need not do it again

    def _disk_full(self, error: BaseException) -> bool:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        # numpy, onnx and protobuf report a failed write without its errno.
        if isinstance(error, OuzelError) or not isinstance(error, Exception):
            return False
        return shutil.disk_usage(self.root).free < _NEARLY_NOTHING

    def _full_error(self) -> OuzelError:
        free = shutil.disk_usage(self.out.parent).free
        return OuzelError(
            f"No room to write {self.out} ({free >> 20} MiB free there); nothing was kept. Free some or choose another place."
        )
