"""`ouzel models`."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from ouzel.bundle.bundle import open_bundle
from ouzel.bundle.folders import models_folder
from ouzel.bundle.store import StoredModel, list_models
from ouzel.cli.table import size, table
from ouzel.errors import BundleError

HELP = "list the models that are there"
DESCRIPTION = """\
List the bundles in the models folder, and first the one that comes with ouzel: name, family, task,
size, what can run them, path. The folder is $OUZEL_HOME/models, or `ouzel/models` in the platform's
place for a user's data."""


def add(commands: Any) -> None:
    parser = commands.add_parser("models", help=HELP, description=DESCRIPTION)
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    parser.add_argument("--verify", action="store_true", help="check every file's checksum, also of bundles checked before")
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    models = list_models()
    problems = {m.name: m.problem for m in models if m.problem}
    if args.verify:
        for model in models:
            try:
                open_bundle(model.path, force_verify=True)
            except BundleError as error:
                problems[model.name] = str(error)
    if args.json:
        print(json.dumps([_facts(m, problems.get(m.name, "")) for m in models], indent=2))
    elif models:
        rows = [_row(m) for m in models]
        print(table(rows, ("NAME", "FAMILY", "TASK", "SIZE", "RUNS ON", "PATH")))
    else:
        print(f"No models in {models_folder()}; `ouzel pull REPO` fetches one.", file=sys.stderr)
    if not args.json:
        for text in problems.values():
            print(f"ouzel: {text}", file=sys.stderr)
    return BundleError.exit_code if problems else 0


def _runs_on(model: StoredModel) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for artifact in model.manifest.artifacts if model.manifest else ():
        weights = found.setdefault(artifact.runtime, [])
        if artifact.weights not in weights:
            weights.append(artifact.weights)
    return found


def _row(model: StoredModel) -> list[str]:
    if model.manifest is None:
        return [model.name, "damaged", "", "", "", str(model.path)]
    runs = ", ".join(f"{runtime} {'+'.join(weights)}" for runtime, weights in _runs_on(model).items())
    return [model.name, model.manifest.family, model.manifest.task, size(model.manifest.size), runs, str(model.path)]


def _facts(model: StoredModel, problem: str) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": model.name, "path": str(model.path)}
    if problem:
        facts["problem"] = problem
    if model.manifest is not None:
        facts |= {"family": model.manifest.family, "task": model.manifest.task, "bytes": model.manifest.size}
        facts |= {"runtimes": _runs_on(model), "source": dict(model.manifest.source), "notes": model.manifest.notes}
    return facts
