"""docs/cli.md holds the help texts as they are; `python tests/test_cli_help.py` writes them there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ouzel.cli.main import COMMANDS, build_parser

DOCS = Path(__file__).parent.parent / "docs" / "cli.md"
BLOCK = re.compile(r"<!-- help: (\w+) -->\n```\n.*?```\n", re.DOTALL)


def help_of(command: str) -> str:
    parser = build_parser()
    if command != "ouzel":
        subparsers = next(a for a in parser._actions if a.choices and command in a.choices)
        parser = subparsers.choices[command]
    return parser.format_help()


def block(command: str) -> str:
    return f"<!-- help: {command} -->\n```\n{help_of(command)}```\n"


def names() -> list[str]:
    return ["ouzel", *(module.__name__.rpartition(".")[2] for module in COMMANDS)]


@pytest.mark.parametrize("command", names())
def test_docs_hold_the_help_as_it_is(command):
    assert block(command) in DOCS.read_text(encoding="utf-8"), "run python tests/test_cli_help.py"


def test_docs_hold_no_other_help():
    assert [m[1] for m in BLOCK.finditer(DOCS.read_text(encoding="utf-8"))] == names()


@pytest.mark.parametrize("command", names())
def test_every_option_is_explained_and_lines_are_short(command):
    text = help_of(command)
    assert max(map(len, text.splitlines())) <= 100
    parser = build_parser()
    if command != "ouzel":
        parser = next(a for a in parser._actions if a.choices and command in a.choices).choices[command]
        assert parser.description
        assert all(action.help for action in parser._actions)


if __name__ == "__main__":
    DOCS.write_text(BLOCK.sub(lambda m: block(m[1]), DOCS.read_text(encoding="utf-8")), encoding="utf-8")
