"""`manifest.json`: what a bundle holds, with the size and checksum of every file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Any

from ouzel.errors import BundleError

FORMAT = 1
MANIFEST_NAME = "manifest.json"
TASKS = ("CustomVoice", "VoiceDesign", "Base")

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of a bundle: size in bytes, sha256 as 64 lower-case hex digits."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Artifact:
    """One stage made ready for one runtime.

    stage: "talker", "predictor", "decoder", …; weights: "fp32", "fp16", "int8", "int4", …; files: bundle-relative, the first
    is the entry point; meta: dims and shapes that the runtime needs, JSON values only.
    """

    stage: str
    runtime: str
    weights: str
    files: tuple[str, ...]
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The whole of `manifest.json`; maps are keyed by bundle-relative POSIX path, package name and so on."""

    name: str
    family: str
    tokenizer: str
    task: str
    files: Mapping[str, FileEntry]
    artifacts: tuple[Artifact, ...]
    notes: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)
    placement: Mapping[str, Any] = field(default_factory=dict)
    format: int = FORMAT

    @property
    def size(self) -> int:
        """Bytes of all listed files together."""
        return sum(entry.size for entry in self.files.values())

    def dump(self) -> str:
        """JSON text, keys in a fixed order, so that equal manifests are equal files."""
        value = asdict(self)
        ordered = {"format": value.pop("format"), **value}
        ordered["files"] = dict(sorted(ordered["files"].items()))
        return json.dumps(ordered, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def parse(cls, text: str, where: str = MANIFEST_NAME) -> Manifest:
        """Read and check manifest text; BundleError names the key that is wrong."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as err:
            raise BundleError(f"{where} is not valid JSON ({err}); the bundle is damaged, convert or pull it again.") from None
        if not isinstance(value, dict) or "format" not in value:
            raise BundleError(f"{where} is not the manifest of an ouzel bundle: it has no 'format'.")
        version = value["format"]
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise BundleError(f"{where}: 'format' must be a whole number from 1 to {FORMAT}, got {version!r}.")
        if version > FORMAT:
            raise BundleError(
                f"{where} has format {version}, but this ouzel reads formats up to {FORMAT}: upgrade ouzel or convert again."
            )
        return cls(
            format=version,
            name=_text(value, "name", where),
            family=_text(value, "family", where),
            tokenizer=_text(value, "tokenizer", where),
            task=_text(value, "task", where),
            notes=_text(value, "notes", where, default=""),
            files=_files(value, where),
            artifacts=_artifacts(value, where),
            versions=_mapping(value, "versions", where),
            source=_mapping(value, "source", where),
            placement=_placement(value, where),
        )


def safe_path(rel: object, where: str = MANIFEST_NAME) -> str:
    """`rel` if it is a plain path inside the bundle, in the one spelling the manifest uses; BundleError otherwise."""
    ok = isinstance(rel, str) and rel not in ("", ".") and not any(ch in rel for ch in "\\:\0")
    if ok:
        path = PurePosixPath(str(rel))
        ok = not path.is_absolute() and ".." not in path.parts and path.as_posix() == rel and rel != MANIFEST_NAME
    if not ok:
        raise BundleError(f"{where} names the file {rel!r}, which is not a plain path inside the bundle; it was refused.")
    return str(rel)


def _text(value: dict[str, Any], key: str, where: str, default: str | None = None) -> str:
    found = value.get(key, default)
    if not isinstance(found, str):
        raise BundleError(f"{where}: {key!r} must be a text, got {found!r}.")
    return found


def _mapping(value: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    found = value.get(key, {})
    if not isinstance(found, dict):
        raise BundleError(f"{where}: {key!r} must be a mapping, got {type(found).__name__}.")
    return found


def _placement(value: dict[str, Any], where: str) -> dict[str, Any]:
    found = _mapping(value, "placement", where)
    for stage, choice in found.items():
        if not isinstance(choice, dict) or not all(isinstance(text, str) for text in choice.values()):
            raise BundleError(f"{where}: the placement of {stage!r} must be a mapping of names, got {choice!r}.")
    return found


def _files(value: dict[str, Any], where: str) -> dict[str, FileEntry]:
    files: dict[str, FileEntry] = {}
    for rel, entry in _mapping(value, "files", where).items():
        safe_path(rel, where)
        size, sha256 = (entry.get("size"), entry.get("sha256")) if isinstance(entry, dict) else (None, None)
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise BundleError(f"{where}: the size of {rel!r} must be a number of bytes, got {size!r}.")
        if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
            raise BundleError(f"{where}: the sha256 of {rel!r} must be 64 hex digits, got {sha256!r}.")
        files[rel] = FileEntry(size, sha256)
    if not files:
        raise BundleError(f"{where} lists no files.")
    return files


def _artifacts(value: dict[str, Any], where: str) -> tuple[Artifact, ...]:
    found = value.get("artifacts", [])
    if not isinstance(found, list):
        raise BundleError(f"{where}: 'artifacts' must be a list, got {type(found).__name__}.")
    listed = value.get("files", {})
    artifacts: list[Artifact] = []
    for index, item in enumerate(found):
        place = f"{where}: artifacts[{index}]"
        if not isinstance(item, dict):
            raise BundleError(f"{place} must be a mapping, got {type(item).__name__}.")
        files = item.get("files")
        if not isinstance(files, list) or not files:
            raise BundleError(f"{place}: 'files' must be a list with at least one file, got {files!r}.")
        for rel in files:
            if safe_path(rel, place) not in listed:
                raise BundleError(f"{place} uses {rel!r}, which 'files' does not list.")
        texts = {key: _text(item, key, place) for key in ("stage", "runtime", "weights")}
        artifacts.append(Artifact(**texts, files=tuple(files), meta=_mapping(item, "meta", place)))
    return tuple(artifacts)
