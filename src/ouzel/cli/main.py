"""The `ouzel` command: parses, runs one command, turns what went wrong into one sentence and an exit code."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata
from typing import NoReturn

from ouzel.cli import convert, doctor, models, pull, say, serve, tune, voices
from ouzel.cli.options import Parser, refuse_unknown, split_stage_options
from ouzel.cli.streams import mend_streams, silence_stdout
from ouzel.errors import OuzelError, UsageError

COMMANDS = (say, serve, voices, models, pull, convert, doctor, tune)
INTERRUPTED = 130  # 128 + SIGINT, as a shell reports it

DESCRIPTION = """\
Speech from text, streamed on this machine: Qwen3-TTS-class models without a server.

stdout carries only the result of a command; progress, figures and errors go to stderr.
exit codes: 0 done, 1 failed at work, 2 the request cannot be honoured as asked, 130 interrupted"""


def build_parser() -> Parser:
    """The whole command line; nothing heavy is imported for it."""
    parser = Parser(prog="ouzel", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"ouzel {metadata.version('ouzel')}")
    # Not required for argparse: its complaint would not name the choices.
    parser.set_defaults(run=_without_command, parser=parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    for module in COMMANDS:
        module.add(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. A traceback means a bug."""
    try:
        if argv is None:
            mend_streams()
            argv = sys.argv[1:]
            signal.signal(signal.SIGTERM, _terminate)
        others, stages = split_stage_options(_asked_for_help(argv))
        args, extra = build_parser().parse_known_args(others)
        refuse_unknown(args.parser, extra)
        if stages and not hasattr(args, "stages"):
            refuse_unknown(args.parser, stages)
        args.stages = stages
        args.given = others
        logging.basicConfig(
            format="ouzel: %(message)s", level=logging.ERROR if getattr(args, "quiet", False) else logging.WARNING
        )
        code: int = args.run(args)
        sys.stdout.flush()
    except OuzelError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _fail("interrupted.", INTERRUPTED)
    except BrokenPipeError:
        return _fail("the program that reads the output has closed the pipe.", OuzelError.exit_code)
    except OSError as error:  # what the system refuses is no bug of ours, wherever it happens
        place = "reading or writing" if error.filename is None else f"the use of {str(error.filename)!r}"
        return _fail(f"{place} failed: {error.strerror or error}.", OuzelError.exit_code)
    return code


def _asked_for_help(argv: Sequence[str]) -> Sequence[str]:
    """`ouzel help [COMMAND]` is what people type first; it means `ouzel [COMMAND] --help`."""
    return [*argv[1:2], "--help"] if argv and argv[0] == "help" else argv


def _without_command(args: argparse.Namespace) -> NoReturn:
    names = ", ".join(module.__name__.rpartition(".")[2] for module in COMMANDS)
    raise UsageError(f"Give a command: {names}. See `ouzel --help`.")


def _terminate(number: int, frame: object) -> NoReturn:
    """SIGTERM ends the command as Ctrl-C does: what is half-written goes away."""
    sys.exit(128 + number)


def _fail(message: str, code: int) -> int:
    with suppress(OSError):  # stderr may be the closed pipe
        print(f"ouzel: error: {message}", file=sys.stderr)
    silence_stdout()
    return code
