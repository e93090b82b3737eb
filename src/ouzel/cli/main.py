"""The `ouzel` command: parses, runs one command, turns what went wrong into one sentence and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import metadata

from ouzel.cli import convert, doctor, models, pull, say, voices
from ouzel.cli.options import Parser, refuse_unknown
from ouzel.errors import OuzelError

COMMANDS = (say, voices, models, pull, convert, doctor)
INTERRUPTED = 130  # 128 + SIGINT, as a shell reports it

DESCRIPTION = """\
Speech from text, streamed on this machine: Qwen3-TTS-class models without a server.

stdout carries only the result of a command; progress, figures and errors go to stderr.
exit codes: 0 done, 1 failed at work, 2 the request cannot be honoured as asked, 130 interrupted"""


def build_parser() -> Parser:
    """The whole command line; nothing heavy is imported for it."""
    parser = Parser(prog="ouzel", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"ouzel {metadata.version('ouzel')}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)
    for module in COMMANDS:
        module.add(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. A traceback means a bug."""
    try:
        parser = build_parser()
        args, extra = parser.parse_known_args(argv)
        if not getattr(args, "takes_extra", False):
            refuse_unknown(getattr(args, "parser", parser), extra)
        args.extra = extra
        code: int = args.run(args)
        sys.stdout.flush()
    except OuzelError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _fail("interrupted.", INTERRUPTED)
    except BrokenPipeError:
        return _fail("the program that reads the output has closed the pipe.", OuzelError.exit_code)
    return code


def _fail(message: str, code: int) -> int:
    with suppress(OSError):  # stderr may be the closed pipe
        print(f"ouzel: error: {message}", file=sys.stderr)
    with suppress(OSError, ValueError):
        # Else the interpreter flushes what is buffered at exit, meets the closed pipe again and prints a traceback.
        sys.stdout.flush()
        return code
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return code
