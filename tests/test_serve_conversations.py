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


# What differs, and why it stays so.
OURS = {
    "sentences_hard": "the splitter: docs/text.md",
    "sentences_letters": "the splitter: docs/text.md",
    "sentences_lines": "the splitter: docs/text.md",
    "clauses": "the splitter: docs/text.md",
    "binary_later": "the server ends the session with an internal error; ours goes on, as after other wrong messages",
    "cancel_is_unknown": "input.cancel is ours",
}


def said(url: str, name: str) -> list[dict[str, Any]]:
    return [seen(entry) for entry in CLIENT.converse(url, CLIENT.CONVERSATIONS[name])]


def recorded(name: str) -> list[dict[str, Any]]:
    return [seen(entry) for entry in GOLDEN["conversations"][name]]


def test_the_golden_is_of_this_script():
    assert list(GOLDEN["conversations"]) == list(CLIENT.CONVERSATIONS)
    assert list(GOLDEN["requests"]) == list(CLIENT.REQUESTS)


@pytest.mark.parametrize("name", [name for name in CLIENT.CONVERSATIONS if name not in (*SILENT, *OURS)])
def test_the_same_conversation(server, name):
    assert said(server.url, name) == recorded(name)


@pytest.mark.parametrize("name", SILENT)
def test_the_same_silence(voice, name):
    with served(voice, compat="vllm-omni", session_config_s=0.5, session_idle_s=0.5) as impatient:
        assert said(impatient.url, name) == recorded(name)


@pytest.mark.parametrize("name", OURS)
def test_what_differs_really_does(server, name):
    """So that nothing stays in the list that has become the same."""
    if name == "binary_later":  # the script waits for the server to end the session
        return
    assert said(server.url, name) != recorded(name)


# ---- HTTP

BEYOND = {
    "wrong_method": "an error has the same body everywhere",
    "no_such_path": "an error has the same body everywhere",
    "models": "vLLM's permissions and limits mean nothing here",
    "health": "a word for it",
}
FREE = ("id", "created", "param")  # ours names the field that an error is about; the server does so for some
NAMES = {"Bad Request": "BadRequestError"}  # the server has both for 400


def holds(ours: Any, theirs: Any, where: str = "") -> None:
    """Everything that the server's answer has is in ours; ours may have more."""
    if isinstance(theirs, dict):
        assert isinstance(ours, dict), where
        assert set(theirs) <= set(ours), where
        for key in theirs.keys() - FREE:
            holds(ours[key], theirs[key], f"{where}.{key}")
    elif isinstance(theirs, list):
        assert isinstance(ours, list), where
        assert len(ours) == len(theirs), where
        for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            holds(mine, other, f"{where}[{index}]")
    else:
        assert ours == NAMES.get(theirs, theirs), where


@pytest.mark.parametrize("name", [name for name in CLIENT.REQUESTS if name not in BEYOND])
def test_the_same_answer(server, name):
    holds(CLIENT.ask(server.url, *CLIENT.REQUESTS[name]), GOLDEN["requests"][name])


@pytest.mark.parametrize("name", BEYOND)
def test_another_body_with_the_same_status(server, name):
    answer = CLIENT.ask(server.url, *CLIENT.REQUESTS[name])
    assert (answer["status"], answer["type"]) == (GOLDEN["requests"][name]["status"], GOLDEN["requests"][name]["type"])
    assert answer != GOLDEN["requests"][name]
