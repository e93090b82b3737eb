"""The argument parser of every command: errors are UsageErrors in one sentence, unknown options get the nearest match."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from ouzel.errors import UsageError, choose

_STAGE_OPTION = re.compile(r"--stage[-_]\d+[-_]")
_WIDTH = 100
STATS = ("table", "json")


class Parser(argparse.ArgumentParser):
    """argparse without abbreviations, raising UsageError instead of printing usage and exiting."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("allow_abbrev", False)
        kwargs.setdefault("formatter_class", HelpFormatter)
        super().__init__(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        text = message[:1].upper() + message[1:].rstrip(".")
        raise UsageError(f"{text}. See `{self.prog} --help`.")

    def options(self) -> list[str]:
        """Every long option this parser knows."""
        return [text for action in self._actions for text in action.option_strings if text.startswith("--")]


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Fixed width and form, so that help reads the same in every terminal, with every Python and in docs/cli.md."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_WIDTH, max_help_position=30)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        # Python 3.13 began to name an option's value once, not behind each spelling.
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        value = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {value}"


def refuse_unknown(parser: Parser, extra: Iterable[str]) -> None:
    """Raise UsageError for arguments that no parser took."""
    for text in extra:
        if text.startswith("-") and text != "-":
            raise choose("option", text.partition("=")[0], parser.options())
        raise UsageError(f"Unexpected argument {text!r}; quote a text that has spaces. See `{parser.prog} --help`.")


def split_stage_options(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """(the other arguments, the --stage-<id>-<field> options with their values): argparse cannot know the names of the latter.

    A bare --stats gets its default value, so that it does not take the text behind it for one.
    """
    others: list[str] = []
    stages: list[str] = []
    rest = list(arguments)
    while rest:
        text = rest.pop(0)
        if text == "--":
            others += [text, *rest]
            break
        if text == "--stats" and not (rest and rest[0] in STATS):
            text = f"--stats={STATS[0]}"
        if not _STAGE_OPTION.match(text):
            others.append(text)
            continue
        stages.append(text)
        if "=" not in text and rest:
            stages.append(rest.pop(0))
    return others, stages


def positive_int(text: str) -> int:
    """argparse type: a whole number from 1 on."""
    return _int(text, 1)


def natural_int(text: str) -> int:
    """argparse type: a whole number from 0 on."""
    return _int(text, 0)


def _int(text: str, minimum: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = minimum - 1
    if value < minimum:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {minimum}")
    return value


def add_model(parser: argparse.ArgumentParser) -> None:
    """The -m option of every command that opens a bundle."""
    parser.add_argument(
        "-m",
        "--model",
        metavar="MODEL",
        help="bundle folder, or a name that `ouzel models` lists "
        "(default: $OUZEL_MODEL, else the model named 'default', else the only one, else the voice that comes with ouzel)",
    )


def add_conversion(parser: argparse.ArgumentParser) -> None:
    """The options of every command that converts."""
    parser.add_argument(
        "--runtime",
        metavar="NAMES",
        default="onnxruntime",
        help="what will run the bundle, one or several separated by commas; `ouzel doctor` lists them (default: %(default)s)",
    )
    parser.add_argument(
        "--weights",
        metavar="WEIGHTS",
        help="weights of the talker and the code predictor: a name, or RUNTIME=NAME,… "
        "(default: the runtime's own; int4, int8 or fp32 for onnxruntime)",
    )
    parser.add_argument(
        "--decoder",
        metavar="WEIGHTS",
        help="how the codec decoder's weights are stored, likewise (default: the runtime's own; fp32, fp16 or int8 for "
        "onnxruntime, which computes in fp32 either way)",
    )
    parser.add_argument(
        "--backend",
        metavar="NAME",
        help="what executorch's programs are lowered for: xnnpack, vulkan, coreml or qnn, the last three unchecked "
        "(default: $OUZEL_EXECUTORCH_BACKEND, else xnnpack)",
    )
    parser.add_argument("--force", action="store_true", help="replace an existing bundle")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
