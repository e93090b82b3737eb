"""`ouzel convert`."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from ouzel.cli.options import add_conversion
from ouzel.cli.progress import ProgressLine

log = logging.getLogger("ouzel.cli")

HELP = "make a bundle of a checkpoint folder"
DESCRIPTION = """\
Make the bundle OUT of CHECKPOINT, a folder in Hugging Face layout (config.json, *.safetensors,
speech_tokenizer/). Needs the conversion libraries: pip install 'ouzel[convert]'. Nothing is left
of OUT when the work fails or is interrupted. Prints the path of the bundle.

examples:
  ouzel convert ~/Qwen3-TTS-12Hz-0.6B-CustomVoice my-voice
  ouzel convert ~/Qwen3-TTS-12Hz-0.6B-CustomVoice my-voice --add --weights int8
  ouzel convert ~/Qwen3-TTS-12Hz-0.6B-CustomVoice for-a-mac --runtime executorch --backend coreml"""


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
            backend=args.backend,
            add=args.add,
            force=args.force,
            progress=progress,
        )
    warn_of_unchecked(path)
    print(path)
    return 0


def warn_of_unchecked(path: Path) -> None:
    """Say what of the bundle has never been run, and why."""
    from ouzel.bundle import open_bundle

    reasons: dict[str, list[str]] = {}
    for artifact in open_bundle(path).manifest.artifacts:
        if reason := artifact.meta.get("unchecked"):
            reasons.setdefault(f"{artifact.meta['backend']}: {reason}", []).append(artifact.stage)
    for reason, stages in reasons.items():
        log.warning("%s were written without having been run, for %s", ", ".join(stages), reason)
