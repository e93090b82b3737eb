"""A converted model on disk, opened for reading."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.bundle.manifest import MANIFEST_NAME, Artifact, Manifest, safe_path
from ouzel.bundle.verify import verify_files
from ouzel.errors import BundleError

DEPLOY = "deploy.yaml"
_NUMBERS = (np.dtype("<f2"), np.dtype("<f4"))


@dataclass(frozen=True, slots=True)
class Bundle:
    """An opened bundle: `root` is its folder. Reads nothing until asked, holds nothing open."""

    root: Path
    manifest: Manifest

    def artifact(self, stage: str, runtime: str | None = None, weights: str | None = None) -> Artifact:
        """The first artifact that fits, in the manifest's order; BundleError lists what there is for the stage."""
        of_stage = [a for a in self.manifest.artifacts if a.stage == stage]
        for item in of_stage:
            if runtime in (None, item.runtime) and weights in (None, item.weights):
                return item
        wanted = " ".join(w for w in (runtime, weights) if w) or "any runtime"
        have = ", ".join(f"{a.runtime} {a.weights}" for a in of_stage) or "none"
        raise BundleError(f"Bundle {self.manifest.name!r} has no {stage!r} for {wanted}. Valid choices: {have}.")

    @property
    def deploy(self) -> Path | None:
        """The deploy file that the bundle brings along: what it is spoken with unless another is named."""
        return self.root / DEPLOY if DEPLOY in self.manifest.files else None

    def path(self, rel: str) -> Path:
        """Where a listed file lies; BundleError when the manifest does not list it."""
        if safe_path(rel) not in self.manifest.files:
            raise BundleError(f"Bundle {self.manifest.name!r} at {self.root} has no file {rel!r}.")
        return self.root / rel

    def array(self, rel: str) -> NDArray[Any]:
        """A `.npy` file of float16 or float32 as a read-only memory map: only the rows that are used are read."""
        return self._mapped(rel, _NUMBERS, "float16 or float32")

    def indices(self, rel: str) -> NDArray[np.uint16]:
        """A `.npy` file of uint16, likewise."""
        return self._mapped(rel, (np.dtype(np.uint16),), "uint16")

    def _mapped(self, rel: str, dtypes: tuple[np.dtype[Any], ...], named: str) -> NDArray[Any]:
        try:
            loaded = np.lib.format.open_memmap(self.path(rel), mode="r")
        except (OSError, ValueError, EOFError) as err:
            reason = str(err).partition("\n")[0].rstrip(".")
            raise BundleError(
                f"{self.root / rel} is not a readable array ({reason}); convert or pull the bundle again."
            ) from None
        if loaded.dtype not in dtypes:
            raise BundleError(f"{self.root / rel} holds {loaded.dtype} values, not {named}; convert the bundle again.")
        return loaded

    def json(self, rel: str) -> Any:
        """A JSON file's value."""
        try:
            return json.loads(self.path(rel).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as err:
            raise BundleError(f"{self.root / rel} is not readable JSON ({err}); convert or pull the bundle again.") from None


def is_bundle(path: Path) -> bool:
    """True for a folder with a manifest, whatever its state."""
    return os.path.isfile(path / MANIFEST_NAME)


def read_manifest(path: Path) -> Manifest:
    """The manifest of the bundle folder `path`, without looking at the files it lists."""
    if not os.path.isdir(path):  # unlike Path.is_dir, False for whatever cannot be looked at
        raise BundleError(f"{path} is not a folder; a bundle is a folder made by `ouzel convert` or `ouzel pull`.")
    where = path / MANIFEST_NAME
    if os.path.exists(where) and not os.path.isfile(where):  # a pipe would be waited for
        raise BundleError(f"{where} is not a file; convert or pull the bundle again.")
    try:
        text = where.read_text(encoding="utf-8")
    except FileNotFoundError:
        hint = "a checkpoint? Run `ouzel convert` on it first" if (path / "config.json").is_file() else "not a bundle"
        raise BundleError(f"{path} has no {MANIFEST_NAME} ({hint}).") from None
    except (OSError, UnicodeDecodeError) as err:
        raise BundleError(f"{where} cannot be read ({err}).") from None
    return Manifest.parse(text, str(where))


def open_bundle(path: str | Path, *, verify: bool = True, force_verify: bool = False) -> Bundle:
    """Open the bundle folder `path`.

    verify: sizes of all files always, checksums unless a stamp says that these very files passed before (`ouzel.bundle.verify`).
    force_verify: hash everything whatever the stamp says. Raises BundleError naming each missing, extra or damaged file.
    """
    root = Path(os.path.expanduser(path))
    manifest = read_manifest(root)
    root = root.resolve()
    if verify or force_verify:
        try:
            verify_files(root, manifest, force=force_verify)
        except OSError as err:
            raise BundleError(f"{err.filename or root} cannot be read ({err.strerror or err}).") from err
    return Bundle(root, manifest)
