"""`ouzel convert`."""

from __future__ import annotations

import argparse
from typing import Any

from ouzel.cli.options import add_conversion
from ouzel.cli.progress import ProgressLine

HELP = "make a bundle of a checkpoint folder"
DESCRIPTION = """\
Make the bundle OUT of CHECKPOINT, a folder in Hugging Face layout (config.json, *.safetensors,
speech_tokenizer/). Needs the conversion libraries: pip install 'ouzel[convert]'. Nothing is left
of OUT when the work fails or is interrupted. Prints the path of the bundle.

examples:
  ouzel convert ~/Qwen3-TTS-12Hz-0.6B-CustomVoice my-voice
  ouzel convert ~/Qwen3-TTS-12Hz-0.6B-CustomVoice my-voice --add --weights int8"""


def add(commands: Any) -> None:
    parser = commands.add_parser("convert", help=HELP, description=DESCRIPTION)
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="folder of the checkpoint")
    parser.add_argument("out", metavar="OUT", help="folder to make")
    add_conversion(parser)
    parser.add_argument(
        "--add",
        action="store_true",
        help="put what is converted into the bundle OUT, made of the same checkpoint; what it has already stays",
    )
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    from ouzel.conversion import convert

    with ProgressLine(quiet=args.quiet) as progress:
        path = convert(
            args.checkpoint,
            args.out,
            runtime=args.runtime,
            weights=args.weights,
            decoder=args.decoder,
            add=args.add,
            force=args.force,
            progress=progress,
        )
    print(path)
    return 0
