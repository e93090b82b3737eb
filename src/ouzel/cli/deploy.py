"""The deploy file as the command line changes it: --deploy-config, --async-chunk, --threads, --stage-…"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from ouzel.pipeline import DeployConfig, Overrides, PipelineConfig


def add_deploy(group: argparse._ArgumentGroup) -> None:
    """The options about the deploy file and placement."""
    from ouzel.cli.options import natural_int

    group.add_argument("--talker", metavar="RUNTIME", help="runs the talker (default: the deploy file's word, else the bundle's)")
    group.add_argument("--predictor", metavar="RUNTIME", help="runs the code predictor (default: the talker's, if it can)")
    group.add_argument("--decoder", metavar="RUNTIME", help="runs the codec decoder (default: as for --talker)")
    group.add_argument(
        "--fallback",
        action="store_true",
        help="warn and take another runtime where one cannot be used here",
    )
    group.add_argument("--threads", type=natural_int, metavar="N", help="of every stage; 0 lets the runtime choose")
    group.add_argument("--deploy-config", "--deploy", metavar="FILE", help="deploy YAML, or the name of one of ouzel's")
    group.add_argument(
        "--async-chunk",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="stream, or make everything before the first sample (default: the deploy file's)",
    )
    group.add_argument("--stage-overrides", metavar="JSON", help="options of stages, see below")


def overrides(args: argparse.Namespace) -> Overrides:
    """What the arguments change in the deploy file. Raises UsageError."""
    from ouzel.pipeline import parse_overrides

    given: list[str] = [*args.stages]
    if args.stage_overrides is not None:
        given += ["--stage-overrides", args.stage_overrides]
    if args.async_chunk is not None:
        given.append("--async-chunk" if args.async_chunk else "--no-async-chunk")
    return parse_overrides(given)


def loading(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `ouzel.load` that say how a model runs, for commands that speak. Raises UsageError."""
    same = ("schedule", "threads", "talker", "predictor", "decoder", "fallback")
    chosen = {name: getattr(args, name) for name in same}
    return chosen | {"deploy": args.deploy_config, "overrides": overrides(args), "stuck": args.stuck_detector}


def deploy(args: argparse.Namespace, pipeline: PipelineConfig, own: Path | None = None) -> DeployConfig:
    """The merged deploy file for a model of this pipeline. Raises ConfigError.

    own: the bundle's deploy file, if it has one.
    """
    from ouzel.api.load import configure

    places = {"talker": args.talker, "predictor": args.predictor, "decoder": args.decoder}
    return configure(args.deploy_config, own, pipeline, overrides(args), args.threads, places)
