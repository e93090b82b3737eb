"""`python -m ouzel.bench`: converts random weights of a published shape and prints what a frame costs.

Speed does not depend on the values of the weights, so random ones of the right shape measure it; how it sounds is another matter.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from ouzel.bench.stages import CHUNK, StageTimes, measure

AIMS = {"talker": 45.0, "predictor": 105.0, "decoder": 92.0, "overhead": 1.0}  # CPU ms per frame, one thread, 0.6B int4
AIM_RSS_MB = 2000.0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ouzel.bench", description=__doc__)
    parser.add_argument("--size", choices=("nano", "tiny", "0.6b", "1.7b"), default="0.6b", help="shape (default: %(default)s)")
    parser.add_argument("--weights", choices=("fp32", "int8", "int4"), default="int4", help="default: %(default)s")
    parser.add_argument("--frames", type=int, default=40, help="frames a run (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="runs, of which the median counts (default: %(default)s)")
    parser.add_argument("--work", type=Path, default=Path("build/bench"), help="where checkpoint and bundle are kept")
    parser.add_argument("--official", metavar="PYTHON", help="a Python with qwen-tts==0.1.1, measured on the same checkpoint")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    given = parser.parse_args(arguments)
    checkpoint = given.work / f"{given.size}-checkpoint"
    bundle = given.work / f"{given.size}-{given.weights}"
    given.work.mkdir(parents=True, exist_ok=True)
    # In processes of their own, so that memory used for conversion does not count as the runtime's.
    if not bundle.is_dir() or given.official:
        if not checkpoint.is_dir():
            note(f"writing random weights of the {given.size} shape")
            run("ouzel.models.qwen3_tts.random_checkpoint", str(checkpoint), "--size", given.size)
        if not bundle.is_dir():
            note(f"converting to {given.weights}")
            run("ouzel", "convert", str(checkpoint), str(bundle), "--weights", given.weights)
    times = measure(bundle, frames=given.frames, repeats=given.repeats, note=note)
    official = None
    if given.official:
        note("the official package, fp32 torch, one thread")
        official = measure_official(given.official, checkpoint)
    if given.json:
        print(json.dumps({"ouzel": times.as_dict(), "official": official}, indent=2))
    else:
        print_table(given.size, given.weights, times, official)
    return 0


def run(module: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", module, *arguments], check=True)


def note(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def measure_official(python: str, checkpoint: Path) -> dict[str, float]:
    script = Path(__file__).with_name("official.py")
    done = subprocess.run(
        [python, str(script), str(checkpoint), "4"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    result: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def print_table(size: str, weights: str, times: StageTimes, official: dict[str, float] | None) -> None:
    runs = f"medians of {times.repeats} runs of {times.frames} frames"
    print(f"{size} shapes, {weights}, one thread a stage; CPU ms per frame (80 ms of audio), {runs}")
    print(f"  {'':28}{'alone':>8}{'streaming':>12}")
    for name, label in (
        ("talker", "talker"),
        ("predictor", "code predictor"),
        ("decoder", f"decoder (fp32, chunk {CHUNK})"),
        ("overhead", "Python and threads"),
        ("total", "total"),
    ):
        aim = f"   aim {AIMS[name]:g}" if size == "0.6b" and weights == "int4" and name in AIMS else ""
        print(f"  {label:28}{getattr(times.alone, name):8.1f}{getattr(times.streaming, name):12.1f}{aim}")
    print(f"  {'prefill, CPU ms':28}{times.prefill:8.1f}")
    print(f"  {'first audio, CPU ms':28}{times.first_audio_cpu:8.1f}   wall {times.first_audio_wall:.0f} ms")
    print(f"  {'RTF (wall / audio)':28}{times.rtf:8.2f}")
    print(f"  {'load, s':28}{times.load_s:8.1f}")
    print(f"  {'memory, MB':28}{times.rss_mb:8.0f}   peak {times.peak_rss_mb:.0f}, aim below {AIM_RSS_MB:g}")
    if official:
        both = times.alone.talker + times.alone.predictor
        print(f"official qwen-tts 0.1.1 (torch {official['torch']}, fp32, one thread), same checkpoint, same run")
        ratio = official["talker_and_predictor"] / both
        print(f"  {'talker and code predictor':28}{official['talker_and_predictor']:8.1f}   {ratio:.1f} x ours")
        ratio = official["decoder_windowed_72_25"] / times.alone.decoder
        print(f"  {'decoder, window 72 + 25':28}{official['decoder_windowed_72_25']:8.1f}   {ratio:.1f} x ours")


if __name__ == "__main__":
    sys.exit(main())
