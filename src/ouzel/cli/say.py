"""`ouzel say`."""

from __future__ import annotations

import argparse
from typing import Any

from ouzel.cli.deploy import add_deploy
from ouzel.cli.options import STATS, Parser, add_model, natural_int, positive_int
from ouzel.cli.output import FORMATS

HELP = "speak a text, to a file, a pipe or the loudspeaker"
DESCRIPTION = """\
Speak TEXT, or what comes in on standard input when TEXT is a single dash. Without -o and --play the
speech is played, if this machine has a player.

examples:
  ouzel say "Good morning." -o morning.wav
  ouzel say "Good morning." -v Vivian --language English --play
  echo "Good morning." | ouzel say - -o - --format pcm | aplay -f S16_LE -r 24000"""
EPILOG = """\
Options of a deploy file can be changed for one run:
  --stage-<id>-<field> VALUE  for example --stage-1-edge_threads 2
  --stage-overrides JSON      the same for several: '{"0": {"edge_threads": 1}}'

An interrupted run (Ctrl-C) stops within one frame and leaves no file; its exit code is 130."""


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser("say", help=HELP, description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("text", metavar="TEXT", nargs="+", help="what to say; several words are joined; - reads standard input")
    add_model(parser)
    voice = parser.add_argument_group("voice")
    voice.add_argument("-v", "--voice", metavar="VOICE", help="a name that `ouzel voices` lists (default: the first)")
    voice.add_argument("--language", metavar="LANGUAGE", help="for example English, or Auto (default: Auto)")
    voice.add_argument("--speed", type=float, metavar="X", help="2 is twice as fast (default: 1); not every model can")
    voice.add_argument("--instruct", metavar="TEXT", help="how to speak, or what the voice is like, in words")
    voice.add_argument("--task-type", metavar="TASK", help="CustomVoice, VoiceDesign or Base; must be the model's own")
    voice.add_argument("--ref-audio", metavar="FILE", help="Base models: speak with the voice of this recording, 1 to 30 s")
    voice.add_argument("--ref-text", metavar="TEXT", help="what is said in the recording: imitate its manner, too")
    voice.add_argument("--speaker-embedding", metavar="FILE", help="Base models: the voice as a .npy vector")
    voice.add_argument("--ref-codes", metavar="FILE", help="Base models: codec frames with --ref-text, .npy (frames, groups)")
    add_output(parser)
    add_sampling(parser)
    add_streaming(parser)
    parser.set_defaults(run=run, parser=parser, stages=[])


def add_output(parser: Parser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("-o", "--output", metavar="FILE", help="write a .wav or .pcm file; - writes to standard output")
    group.add_argument("--format", choices=FORMATS, help="of the output (default: by FILE's suffix; wav for -)")
    group.add_argument("--play", action="store_true", help="play while it is being made; may go together with -o")
    group.add_argument("--stats", choices=STATS, nargs="?", const=STATS[0], help="print how it went on stderr (default: table)")
    group.add_argument("-q", "--quiet", action="store_true", help="no warnings on stderr")


def add_sampling(parser: Parser) -> None:
    group = parser.add_argument_group("sampling")
    group.add_argument("--seed", type=int, metavar="N", help="same seed, same speech (default: a new one each time)")
    group.add_argument("--greedy", action="store_true", help="always take the likeliest code")
    group.add_argument("--temperature", type=float, metavar="X", help="0 is greedy for the first codebook (default: 0.9)")
    group.add_argument("--top-k", type=int, metavar="N", help="choose among the N likeliest codes (default: 50)")
    group.add_argument("--top-p", type=float, metavar="X", help="choose among the likeliest codes of this share (default: 1)")
    group.add_argument("--max-new-tokens", type=positive_int, metavar="N", help="frames at most, 12.5 a second")


def add_streaming(parser: Parser) -> None:
    group = parser.add_argument_group("streaming")
    group.add_argument(
        "--schedule",
        metavar="KIND",
        help="sizes of the chunks in frames: fixed[:FIRST/CHUNK], ramp:N,N,…[/CHUNK], adaptive, auto[:CHUNK], full "
        "(default: the deploy file's)",
    )
    group.add_argument("--initial-codec-chunk-frames", type=natural_int, metavar="N", help="size of the first chunk; 0 for none")
    group.add_argument(
        "--non-streaming-mode",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="layout of the prompt: all text first, or text alongside the speech (default: the model's)",
    )
    group.add_argument(
        "--stuck-detector",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="end a speech that only repeats itself or is silent for seconds (default: yes)",
    )
    group.add_argument("--no-strip", action="store_true", help="leave markdown and emoji in the text")
    add_deploy(group)


def run(args: argparse.Namespace) -> int:
    from ouzel.cli.speak import speak

    return speak(args)
