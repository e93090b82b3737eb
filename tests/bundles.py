"""Converted bundles for tests, made once and kept in build/ as long as the sources that make them stay the same."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = ("adapters.py", "conversion", "bundle", "models", "runtimes")
KEEP_S = 3600.0  # others may be testing with other sources right now


def source_key() -> str:
    digest = hashlib.sha256()
    for name in SOURCES:
        path = ROOT / "src" / "ouzel" / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    for package in ("torch", "onnx", "onnxruntime"):
        digest.update(metadata.version(package).encode())
    return digest.hexdigest()[:16]


def prune(folder: Path, keep: Path) -> None:
    for path in folder.iterdir():
        if path != keep and time.time() - path.stat().st_mtime > KEEP_S:
            shutil.rmtree(path, ignore_errors=True)


def make(folder: Path, checkpoint: Path, **options: Any) -> None:
    import torch

    from ouzel.conversion import convert

    torch.set_num_threads(1)
    convert(checkpoint, folder / "bundle", **options)


def converted(
    checkpoint: Path,
    weights: str | Mapping[str, str] = "fp32",
    runtimes: Sequence[str] = ("onnxruntime",),
    decoder: Mapping[str, str] | None = None,
) -> Path:
    """The bundle made of a cached checkpoint (conftest); do not change what is in there, copy it."""
    folder = ROOT / "build" / "test-bundles"
    label = weights if isinstance(weights, str) else "-".join(weights.values())
    others = "" if tuple(runtimes) == ("onnxruntime",) else "-".join(("", *runtimes, *(decoder or {}).values()))
    final = folder / f"{source_key()}-{checkpoint.name}-{label}{others}"
    if not final.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        work = folder / f"{final.name}.{os.getpid()}"
        work.mkdir()
        try:
            make(work, checkpoint, weights=weights, runtime=runtimes, decoder=decoder)
            if not final.is_dir():
                os.rename(work, final)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        prune(folder, final)
    os.utime(final)
    return final / "bundle"


@pytest.fixture(scope="session")
def tiny_bundle(nano_checkpoint: Callable[[str], Path]) -> Path:
    """A CustomVoice bundle of a random nano checkpoint, fp32. Read only."""
    return converted(nano_checkpoint("custom_voice"))
