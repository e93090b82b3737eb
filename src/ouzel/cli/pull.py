"""`ouzel pull`."""

from __future__ import annotations

import argparse
from typing import Any

from ouzel.cli.convert import warn_of_unchecked
from ouzel.cli.options import add_conversion
from ouzel.cli.progress import ProgressLine

HELP = "fetch a model from the Hugging Face hub and convert it"
DESCRIPTION = """\
Fetch the repository REPO from the Hugging Face hub, check every file against the hub's checksums,
and convert it. A repository that already holds an ouzel bundle is taken as it is and needs no
conversion libraries. An interrupted download goes on where it stopped when you run the same command
again. Only JSON, text and safetensors files are fetched, never pickles. Prints the bundle's path.

example: ouzel pull Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice"""


def add(commands: Any) -> None:
    parser = commands.add_parser("pull", help=HELP, description=DESCRIPTION)
    parser.add_argument("repo", metavar="REPO", help="OWNER/NAME, or OWNER/NAME@REVISION (branch, tag or commit)")
    parser.add_argument("--out", metavar="FOLDER", help="where to put the bundle (default: the models folder)")
    parser.add_argument("--endpoint", metavar="URL", help="address of the hub (default: $HF_ENDPOINT, else the public hub)")
    parser.add_argument("--keep", action="store_true", help="keep the downloaded checkpoint after the conversion")
    add_conversion(parser)
    parser.epilog = "environment: HF_TOKEN opens private and gated repositories; OUZEL_HOME moves models and downloads."
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    from ouzel.conversion import pull

    with ProgressLine(quiet=args.quiet) as progress:
        path = pull(
            args.repo,
            out=args.out,
            endpoint=args.endpoint,
            runtime=args.runtime,
            weights=args.weights,
            decoder=args.decoder,
            backend=args.backend,
            keep=args.keep,
            force=args.force,
            progress=progress,
        )
    warn_of_unchecked(path)
    print(path)
    return 0
