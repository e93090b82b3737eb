"""`ouzel serve`."""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ouzel.cli.deploy import add_deploy, loading
from ouzel.cli.options import Parser, add_model, natural_int, positive_int
from ouzel.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from ouzel.serve.settings import ServeSettings

log = logging.getLogger("ouzel.serve")
HELP = "speak for other programs, over HTTP or Wyoming"
DESCRIPTION = """\
Load a voice and serve it to OpenAI and vLLM-Omni clients: POST /v1/audio/speech and the rest of
docs/serve.md, with --wyoming also to Home Assistant. Needs the server libraries:
pip install 'ouzel[serve]'.

SIGTERM ends what is being spoken in its time, then the server; Ctrl-C silences it at once.

examples:
  ouzel serve
  ouzel serve -m my-voice --port 8880 --compat vllm-omni
  ouzel serve --wyoming tcp://127.0.0.1:10200
  OUZEL_API_KEY=secret ouzel serve --host 0.0.0.0
  ouzel serve --config serve.yaml"""
EPILOG = """\
FILE of --config is YAML: every option here by its name, such as `voice_alias: {alloy: moss}`.
environment: OUZEL_API_KEY is an --api-key that no process list shows.
--stage-<id>-<field> and --stage-overrides change the deploy file as in `ouzel say`."""
ENVIRONMENT_KEY = "OUZEL_API_KEY"


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser("serve", help=HELP, description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument(
        "--config", metavar="FILE", help="the options of this command in a YAML file; what is given here as well wins"
    )
    add_model(parser)
    net = parser.add_argument_group("network")
    net.add_argument("--host", metavar="HOST", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    net.add_argument("--port", type=natural_int, metavar="N", default=8000, help="0 takes a free one (default: %(default)s)")
    net.add_argument("--api-key", metavar="KEY", action="append", default=[], help="clients must send it; may be given again")
    net.add_argument("--api-key-file", metavar="FILE", help="with further keys, one a line")
    net.add_argument(
        "--allow-unauthenticated", action="store_true", help="let anyone in who reaches an address beyond this machine"
    )
    net.add_argument("--cors-origin", metavar="ORIGIN", action="append", default=[], help="web pages that may use the server")
    net.add_argument(
        "--allowed-host", metavar="NAME", action="append", default=[], help="name of this machine besides localhost, for browsers"
    )
    net.add_argument(
        "--wyoming",
        metavar="URI",
        action="append",
        default=[],
        help="also speak Wyoming, for Home Assistant, on tcp://HOST:PORT or unix:///PATH; may be given again",
    )
    api = parser.add_argument_group("interface")
    api.add_argument(
        "--compat",
        metavar="NAME",
        default="openai",
        help="openai or vllm-omni, where their defaults differ (default: %(default)s)",
    )
    api.add_argument("--served-model-name", metavar="NAME", action="append", default=[], help="a further name of the model")
    api.add_argument(
        "--voice-alias", metavar="NAME=VOICE", action="append", default=[], help="a further name of a voice, such as alloy=moss"
    )
    recordings = parser.add_argument_group(
        "recordings to imitate", "A client may always send one within its request. Closed unless given:"
    )
    recordings.add_argument(
        "--allow-remote-audio", action="store_true", help="fetch what clients name by http: and https:, from public addresses"
    )
    recordings.add_argument(
        "--private-audio-host",
        metavar="HOST",
        action="append",
        default=[],
        help="HOST or HOST:PORT that may also have a private address; may be given again",
    )
    recordings.add_argument("--allowed-local-media-path", metavar="DIR", help="read files that clients name below DIR")
    limits = parser.add_argument_group("limits")
    limits.add_argument(
        "--concurrency", type=positive_int, metavar="N", default=8, help="utterances at once (default: %(default)s)"
    )
    limits.add_argument(
        "--queue",
        type=natural_int,
        metavar="N",
        default=16,
        help="requests that may wait, more are refused (default: %(default)s)",
    )
    limits.add_argument(
        "--max-input-chars", type=positive_int, metavar="N", default=20_000, help="of one text (default: %(default)s)"
    )
    limits.add_argument(
        "--max-body-mib",
        type=positive_int,
        metavar="N",
        default=4,
        help="of one request, with the recording that may be in it (default: %(default)s)",
    )
    limits.add_argument(
        "--drain-seconds",
        type=natural_int,
        metavar="N",
        default=20,
        help="for what is spoken after SIGTERM (default: %(default)s)",
    )
    speech = parser.add_argument_group("speech")
    speech.add_argument("--schedule", metavar="KIND", help="sizes of the chunks, as in `ouzel say` (default: the deploy file's)")
    speech.add_argument(
        "--stuck-detector",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="end a speech that only repeats itself or is silent for seconds (default: yes)",
    )
    add_deploy(speech)
    other = parser.add_argument_group("messages")
    other.add_argument("--log-text", action="store_true", help="write the texts of requests into the log")
    other.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="of the lines on stderr (default: %(default)s)"
    )
    other.add_argument("-q", "--quiet", action="store_true", help="only errors on stderr")
    parser.set_defaults(run=run, parser=parser, stages=[])


def run(args: argparse.Namespace) -> int:
    from ouzel.cli.settings_file import configured

    args = configured(args)
    _log_as(args)
    settings = settings_of(args)
    for package in ("fastapi", "uvicorn", "av", "websockets", *(["wyoming"] if settings.wyoming else [])):
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(f"The server needs the package {package!r}: pip install 'ouzel[serve]'.")
    from ouzel.api import Voice, load
    from ouzel.serve.run import run as serve

    chosen = loading(args)

    def loaded() -> Voice:
        announce("loading the voice")
        # The desk bounds what waits, so that a client is told in time; the engine's own bound only has to be no smaller.
        voice = load(
            args.model,
            max_active=settings.concurrency,
            max_waiting=settings.concurrency + settings.queue + 1,
            warm_up=False,
            **chosen,
        )
        try:
            announce(f"warming up {voice.name}")
            voice.warm_up()
        except BaseException:
            voice.close()
            raise
        return voice

    announce = log.info
    serve(settings, loaded, announce=announce)
    return 0


def _log_as(args: argparse.Namespace) -> None:
    """What and how is logged, which the file may say too."""
    from ouzel.serve.journal import JsonFormatter

    logging.getLogger().setLevel(logging.ERROR if args.quiet else logging.WARNING)
    if not args.quiet:
        log.setLevel(logging.INFO)
    if args.log_format == "json":
        for handler in logging.getLogger().handlers:
            handler.setFormatter(JsonFormatter())


def settings_of(args: argparse.Namespace) -> ServeSettings:
    """What the arguments say, as the server's own settings. Raises UsageError."""
    from ouzel.serve.keys import read_keys
    from ouzel.serve.settings import ServeSettings

    keys = [*args.api_key, *filter(None, [os.environ.get(ENVIRONMENT_KEY)])]
    if args.api_key_file is not None:
        keys += read_keys(Path(args.api_key_file))
    aliases = {}
    for text in args.voice_alias:
        name, separator, target = text.partition("=")
        if not (name and separator and target):
            raise UsageError(f"--voice-alias {text!r} must be NAME=VOICE.")
        aliases[name] = target
    return ServeSettings(
        host=args.host,
        port=args.port,
        compat=args.compat,
        api_keys=tuple(keys),
        allow_unauthenticated=args.allow_unauthenticated,
        cors_origins=tuple(args.cors_origin),
        allowed_hosts=tuple(args.allowed_host),
        concurrency=args.concurrency,
        queue=args.queue,
        served_names=tuple(args.served_model_name),
        voice_aliases=aliases,
        allow_remote_audio=args.allow_remote_audio,
        private_audio_hosts=tuple(host.lower() for host in args.private_audio_host),
        allowed_local_media_path=args.allowed_local_media_path,
        max_input_chars=args.max_input_chars,
        max_body_bytes=args.max_body_mib << 20,
        drain_s=args.drain_seconds,
        wyoming=tuple(args.wyoming),
        log_text=args.log_text,
    )
