"""Fetching a checkpoint or a bundle: only the files that are needed, resumable, each one checked against the hub's checksum."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ouzel.bundle.folders import cache_folder
from ouzel.bundle.hub import Hub, Remote, RemoteFile
from ouzel.bundle.manifest import MANIFEST_NAME, Manifest
from ouzel.bundle.progress import Progress, silent
from ouzel.errors import CheckpointError, OuzelError, UsageError

# Weights come as safetensors only: unpickling runs whatever the file says.
_CHECKPOINT_SUFFIXES = frozenset({".safetensors", ".json", ".txt", ".model"})
_MARGIN = 64 << 20  # bytes of disk to leave free


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was downloaded: `folder` holds a bundle (`is_bundle`) or a checkpoint, of `repo` at `commit`."""

    folder: Path
    repo: str
    commit: str
    is_bundle: bool


def split_repo(spec: str) -> tuple[str, str | None]:
    """("OWNER/NAME", revision or None) of "OWNER/NAME[@REVISION]"; UsageError for anything else."""
    repo, at, revision = spec.partition("@")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repo) or (at and not revision):
        raise UsageError(f"{spec!r} is not a repository name; write OWNER/NAME, or OWNER/NAME@REVISION.")
    return repo, revision or None


def fetch(
    spec: str,
    hub: Hub,
    *,
    folder: Path | None = None,
    check: Callable[[Mapping[str, Any]], None] | None = None,
    progress: Progress = silent,
) -> Fetched:
    """Download repository `spec` ("OWNER/NAME[@REVISION]") into `folder`/<commit> (None = the cache folder).

    check: called with a checkpoint's parsed config.json before anything big is fetched; may raise. Interrupted work stays as
    `*.part` and the next call goes on from there. Raises UsageError (unknown or gated repository, no room), CheckpointError
    (neither a checkpoint nor a bundle) or OuzelError (network, checksum).
    """
    repo, revision = split_repo(spec)
    progress(f"looking up {repo}", 0.0)
    remote = hub.look(repo, revision)
    target = (folder or cache_folder() / "hub" / repo.replace("/", "--")) / remote.commit
    by_path = {f.path: f for f in remote.files}
    job = _Job(hub, remote, target, progress)
    try:
        target.mkdir(parents=True, exist_ok=True)
        if MANIFEST_NAME in by_path:
            job.get(by_path[MANIFEST_NAME])
            manifest = Manifest.parse((target / MANIFEST_NAME).read_text(encoding="utf-8"), f"{MANIFEST_NAME} of {repo}")
            lacking = [rel for rel in manifest.files if rel not in by_path]
            if lacking:
                raise OuzelError(f"Repository {repo} lacks {lacking[0]}, which its manifest lists; tell its owner.")
            job.get_all([by_path[rel] for rel in manifest.files])
        elif "config.json" in by_path:
            job.get(by_path["config.json"])
            config = _config(target / "config.json", repo)
            if check is not None:
                check(config)
            wanted = [f for f in remote.files if PurePosixPath(f.path).suffix in _CHECKPOINT_SUFFIXES]
            if not any(f.path.endswith(".safetensors") for f in wanted):
                raise CheckpointError(f"Repository {repo} has no .safetensors weights; other formats are not read.")
            job.get_all(wanted)
        else:
            raise CheckpointError(f"Repository {repo} holds neither a checkpoint (config.json) nor a bundle ({MANIFEST_NAME}).")
    except OSError as err:
        raise OuzelError(f"Cannot write to {target} ({err.strerror or err}); what was downloaded so far is kept.") from err
    progress("downloaded", 1.0)
    return Fetched(target, repo, remote.commit, MANIFEST_NAME in by_path)


class _Job:
    """One repository on its way into one folder."""

    def __init__(self, hub: Hub, remote: Remote, target: Path, progress: Progress) -> None:
        self._hub = hub
        self._remote = remote
        self._target = target
        self._progress = progress
        self._done = 0
        self._total = 0

    def get_all(self, files: list[RemoteFile]) -> None:
        """Fetch what is not there yet, after checking that it fits on the disk."""
        missing = sum(f.size - self._have(f) for f in files)
        free = shutil.disk_usage(self._target).free
        if missing + _MARGIN > free:
            raise UsageError(
                f"{self._remote.repo} needs {missing >> 20} MiB more in {self._target}, but only {free >> 20} MiB are free; "
                "free some or set OUZEL_HOME to another disk."
            )
        self._total = sum(f.size for f in files)
        for file in files:
            self.get(file)

    def get(self, file: RemoteFile) -> None:
        """Fetch one file unless it is there and right; resumes a part, and starts once over when the resumed file is wrong."""
        final = self._target / file.path
        part = final.with_name(final.name + ".part")
        final.parent.mkdir(parents=True, exist_ok=True)
        if final.is_file() and _right(final, file):
            self._count(file, file.size)
            return
        base = self._done
        for _attempt in range(2):
            self._done = base
            start = self._start(part, file)
            self._count(file, start)
            with part.open("r+b" if start else "wb") as target:
                target.seek(start)
                self._hub.download(self._remote, file, target, start, lambda n: self._count(file, n))
            if _right(part, file):
                part.replace(final)
                return
            part.unlink()
            if not start:
                break
        raise OuzelError(
            f"{file.path} of {self._remote.repo} arrived damaged (its checksum differs); run the same command again."
        )

    def _have(self, file: RemoteFile) -> int:
        final = self._target / file.path
        if final.is_file() and final.stat().st_size == file.size:
            return file.size
        return self._start(final.with_name(final.name + ".part"), file)

    def _start(self, part: Path, file: RemoteFile) -> int:
        size = part.stat().st_size if part.is_file() else 0
        return size if size <= file.size else 0

    def _count(self, file: RemoteFile, size: int) -> None:
        self._done += size
        self._progress(f"downloading {file.path}", min(self._done / self._total, 1.0) if self._total else 0.0)


def _right(path: Path, file: RemoteFile) -> bool:
    """Size and checksum as the hub stated them."""
    if path.stat().st_size != file.size:
        return False
    digest = hashlib.sha256()
    expected = file.sha256
    if expected is None:
        if file.git_sha1 is None:
            return True
        digest = hashlib.sha1(f"blob {file.size}\0".encode(), usedforsecurity=False)
        expected = file.git_sha1
    with path.open("rb") as opened:
        while block := opened.read(1 << 20):
            digest.update(block)
    return digest.hexdigest() == expected


def _config(path: Path, repo: str) -> Mapping[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as err:
        raise CheckpointError(f"config.json of {repo} is not valid JSON ({err}).") from None
    if not isinstance(value, dict):
        raise CheckpointError(f"config.json of {repo} is not a mapping.")
    return value
