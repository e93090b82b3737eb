"""Session fixtures: random checkpoints in the official layout, written once into build/ and found again by later runs."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import ouzel.models.qwen3_tts as family
from browser_case import browser, chromium  # noqa: F401  fixtures for the tests of the page
from bundles import tiny_bundle  # noqa: F401  a fixture for all tests
from embedded_case import embedded  # noqa: F401  another
from mnn_case import mnn_bundle, mnn_checkpoint  # noqa: F401  and more
from ouzel.models.qwen3_tts.random_checkpoint import write_random_checkpoint

CACHE = Path(__file__).parents[1] / "build" / "checkpoints"
# No test is about time: another program may have the processor at any moment.
settings.register_profile("ouzel", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ouzel")
WRITER = ("random_checkpoint", "random_config", "random_encoders", "random_tokenizer", "random_values", "shard", "tensors")


def cached_checkpoint(size: str, kind: str, *, seed: int = 0, dtype: str = "bf16", encoders: bool = False) -> Path:
    """A checkpoint folder, read-only by agreement. Its name changes with the arguments and with the writer's source."""
    key = hashlib.sha256(f"{size} {kind} {seed} {dtype} {encoders}".encode())
    for module in WRITER:
        key.update((Path(family.__file__).parent / f"{module}.py").read_bytes())
    folder = CACHE / f"{size}-{kind}-{key.hexdigest()[:12]}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        mine = folder.with_name(f"{folder.name}.{os.getpid()}")  # another test run may be writing the same one
        write_random_checkpoint(mine, size=size, kind=kind, seed=seed, dtype=dtype, encoders=encoders)
        try:
            mine.rename(folder)
        except OSError:
            shutil.rmtree(mine)
    return folder


@pytest.fixture(scope="session")
def tiny_checkpoint() -> Callable[[str], Path]:
    """tiny_checkpoint("custom_voice" | "base" | "voice_design"): published ids and codebooks, 67 MB, 2 s the first time."""
    return lambda kind="custom_voice": cached_checkpoint("tiny", kind)


@pytest.fixture(scope="session")
def nano_checkpoint() -> Callable[[str], Path]:
    """nano_checkpoint("custom_voice" | "base" | "voice_design"): own small text ids and codebooks of 256, 3 MB, 0.1 s."""
    return lambda kind="custom_voice": cached_checkpoint("nano", kind)
