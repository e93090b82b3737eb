"""A random checkpoint with a phone track, and bundles of it, for the tests of the embedded voice's text side."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from functools import cache
from pathlib import Path

import ouzel.models.qwen3_tts as family
from bundles import converted
from conftest import CACHE
from ouzel.models.qwen3_tts.random_checkpoint import write_random_checkpoint

VOICES = {
    "fern": {"language": "english", "description": "female, a test", "licence": "CC0", "origin": "chance"},
    "moss": {"description": "male"},
}


@cache
def phone_checkpoint() -> Path:
    """nano, float32, with voices.json. Read only."""
    folder = Path(family.__file__).parent
    key = hashlib.sha256(json.dumps(VOICES).encode())
    for path in sorted([*folder.glob("random_*.py"), *folder.glob("p*.py"), folder / "track.py", folder / "shard.py"]):
        key.update(path.read_bytes())
    final = CACHE / f"nano-phones-{key.hexdigest()[:12]}"
    if not final.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        mine = final.with_name(f"{final.name}.{os.getpid()}")
        write_random_checkpoint(mine, size="nano", dtype="f32", frontend="phone_track")
        (mine / "voices.json").write_text(json.dumps(VOICES), encoding="utf-8")
        try:
            mine.rename(final)
        except OSError:
            shutil.rmtree(mine)
    return final


def phone_bundle(weights: str = "fp32") -> Path:
    """Converted for ONNX Runtime. Read only."""
    return converted(phone_checkpoint(), weights)
