"""One client, two servers: what the real vLLM-Omni answered (tests/golden/conversations.json), and what ours does.

The client is tools/oracle/conversations.py, which wrote the golden with the server running; here it talks to ours, with the same
random checkpoint. Compared are types, order and fields; not lengths of audio, nor the words of errors.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ouzel
from bundles import converted
from conftest import cached_checkpoint
from serve_case import Served, served

ROOT = Path(__file__).parents[1]
GOLDEN = json.loads((ROOT / "tests" / "golden" / "conversations.json").read_text(encoding="utf-8"))


def client_script() -> Any:
    spec = importlib.util.spec_from_file_location("conversations", ROOT / "tools" / "oracle" / "conversations.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["conversations"] = module
    spec.loader.exec_module(module)
    return module


CLIENT = client_script()
SILENT = ("no_config", "idle")  # they wait for the server's patience to end


@pytest.fixture(scope="module")
def voice() -> Iterator[ouzel.Voice]:
    with ouzel.load(converted(cached_checkpoint("tiny", "custom_voice", dtype="f32")), stuck=False, threads=1) as found:
        found.name = "tiny"
        yield found


@pytest.fixture(scope="module")
def server(voice) -> Iterator[Served]:
    with served(voice, compat="vllm-omni") as found:
        yield found
        found.wait_idle()


def seen(entry: dict[str, Any]) -> dict[str, Any]:
    """What is compared of a message."""
    if "closed" in entry:
        # The server ends a session after an error without a closing frame; ours says why.
        return {"closed": entry["closed"] == 1000}
    kept = dict(entry)
    if kept.get("type") == "error":
        assert kept.pop("message")
    if "total_bytes" in kept:
        kept["total_bytes"] = kept["total_bytes"] > 0
    return kept
