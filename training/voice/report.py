"""`make voice-report`: how a bundle of the embedded voice sounds and what it costs, beside its teacher.

    python -m training.voice.report                                  # the voice inside the package -> docs/voice-report.md
    python -m training.voice.report --bundle DIR --compare FP32 INT4  # another one; others of the same voice beside it
    python -m training.voice.report --bundle DIR --sets everyday --no-page   # a quick look while training
    python -m training.voice.report --bundle DIR --talker llama_cpp --decoder mnn --no-page   # on other runtimes

Resumable: what was heard lies under WORK/report, by the checksum of the bundle. The first of --compare is the full-precision one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ouzel.bundle import open_bundle
from ouzel.runtimes.base import STAGES

from . import page
from .agreement import Agreement, compare
from .costs import first_audio, parts
from .findings import Compared, Findings
from .gates import gates
from .judge import Listener
from .listening import Heard, Item, TeacherSource, VoiceSource, checksum, items, listen
from .sentences import SETS, SHORT
from .teacher import SPEAKERS

SAMPLES = {"everyday": 0, "benchmark": 10, "numbers": 1}
"""Which sentence of each set becomes a sample, once for each speaker."""
SAMPLE_BYTES = 1_200_000  # of all samples together
_BEGAN = time.monotonic()


def note(text: str) -> None:
    print(f"[{(time.monotonic() - _BEGAN) / 60:5.1f} min] {text}", flush=True)


@cache
def listener() -> Listener:
    return Listener(threads=1)


def heard_of(model: str | Path | None, work: Path, wanted: Sequence[Item], options: dict[str, Any]) -> list[Heard]:
    source = VoiceSource(model, **options)
    try:
        return listen(source, work, wanted, listener, note)
    finally:
        source.close()


def beside(args: argparse.Namespace, own: VoiceSource, wanted: Sequence[Item], options: dict[str, Any]) -> list[Compared]:
    """The bundles of --compare and the own one, each with its agreement with the first."""
    paths = [*args.compare, own.bundle.root]
    paths = list({checksum(open_bundle(path)): path for path in paths}.values())
    note(f"agreement of {len(paths) - 1} bundles with {paths[0].name}")
    texts = [(item.text, speaker) for item in wanted if item.set == "everyday" for speaker in SPEAKERS][: args.agreement]
    shares: list[Agreement | None] = [Agreement(1.0, 1.0, 1.0), *compare(paths[0], paths[1:], texts)]
    found = []
    for path, share in zip(paths, shares, strict=True):
        heard = heard_of(path, args.work, wanted, options)
        found.append(Compared(path.name, open_bundle(path).manifest.size, heard, share))
    return found


def samples(source: VoiceSource, folder: Path) -> dict[str, str]:
    """A few short wavs of 16 bits, spoken anew with the report's seed; file name to speaker and text."""
    folder.mkdir(parents=True, exist_ok=True)
    written: dict[str, str] = {}
    total = 0
    for name, index in SAMPLES.items():
        item = items([name])[index]
        for speaker in SPEAKERS:
            speech = source.voice.say(item.text, voice=speaker, **source.options)
            total += 44 + 2 * len(speech.samples)
            if total > SAMPLE_BYTES:
                note(f"no room for {name}-{speaker}.wav: the samples would take more than {SAMPLE_BYTES / 1e6} MB")
                return written
            speech.save(folder / f"{name}-{speaker}.wav")
            written[f"{name}-{speaker}.wav"] = f"{speaker}: {item.text}"
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("build/voice"), help="folder of everything that is made")
    parser.add_argument("--bundle", help="bundle folder or name (default: the one that ouzel.load() takes)")
    parser.add_argument(
        "--compare", type=Path, nargs="+", default=[], help="other bundles of the voice, the full-precision one first"
    )
    parser.add_argument("--sets", default=",".join((*SETS, SHORT)), help="of: %(default)s")
    parser.add_argument("--agreement", type=int, default=40, help="sentences of the agreement (default %(default)s)")
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    parser.add_argument("--no-page", action="store_true", help="print the tables, write nothing under --docs")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--temperature", type=float)
    parser.add_argument("--top-k", type=int)
    parser.add_argument("--greedy", action="store_true")
    for stage in STAGES:
        parser.add_argument(f"--{stage}", metavar="RUNTIME", help=f"where the {stage} runs (default: as `load` chooses)")
    args = parser.parse_args()
    given = {"seed": args.seed, "temperature": args.temperature, "top_k": args.top_k, "greedy": args.greedy or None}
    options = {name: value for name, value in given.items() if value is not None}
    wanted = items(args.sets.split(","))

    placed = {stage: name for stage in STAGES if (name := getattr(args, stage))}
    source = VoiceSource(args.bundle, placed, **options)
    try:
        heard = listen(source, args.work, wanted, listener, note)
        teacher = listen(TeacherSource(args.work), args.work, wanted, listener, note)
        note("first audio, warm and from the start of the process")
        first = None if args.no_page else first_audio(source.voice)
        others = beside(args, source, wanted, options) if args.compare else []
        spoken = {} if args.no_page else samples(source, args.docs / "voice")
        found = Findings(
            source.bundle.manifest.name, source.key, source.options, heard, teacher, first, parts(source.bundle), others, spoken
        )
    finally:
        source.close()
    for piece in (gates(found), page.errors(found), page.sound(found), page.compared(found) if others else ""):
        print(piece)
    if args.no_page:
        return
    note(f"written: {page.write(found, args.docs)}")


if __name__ == "__main__":
    main()
