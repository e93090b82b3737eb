"""`ouzel voices`."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from ouzel.cli.options import add_model
from ouzel.cli.table import table

HELP = "list the voices and languages of a model"
DESCRIPTION = """\
List the voices that a model offers, with their main language, description, licence and origin where
the model states them, and on stderr the languages it speaks. A VoiceDesign model has no list: say
what the voice is like with `ouzel say --instruct`. Nor has a Base model: give it a recording with
`ouzel say --ref-audio`."""


def add(commands: Any) -> None:
    parser = commands.add_parser("voices", help=HELP, description=DESCRIPTION)
    add_model(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON object with task, voices and languages")
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    from ouzel.bundle import open_bundle
    from ouzel.bundle.store import resolve_model
    from ouzel.models.registry import get_family

    bundle = open_bundle(resolve_model(args.model))
    frontend = get_family(bundle.manifest.family).frontend(bundle)
    if args.json:
        facts = {
            "model": bundle.manifest.name,
            "task": frontend.task,
            "voices": [asdict(voice) for voice in frontend.voices],
            "languages": list(frontend.languages),
        }
        print(json.dumps(facts, indent=2))
        return 0
    if frontend.voices:
        print(table([(v.name, v.language or "", v.description, v.licence, v.origin) for v in frontend.voices]))
    else:
        print(f"{bundle.manifest.name} is a {frontend.task} model: it has no named voices.", file=sys.stderr)
    print(f"languages: {', '.join(frontend.languages)}", file=sys.stderr)
    return 0
