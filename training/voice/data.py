"""`make voice-data`: the teacher speaks the corpus. Resumable; two processes may run beside each other on different parts.

    python -m training.voice.data --work DIR --part audio --minutes 50     # with waveforms: for the codec and the student
    python -m training.voice.data --work DIR --part prefix --minutes 480   # without: for the talker, a tenth of the cost

One .npz an utterance: text, form, durations, pitch, hidden, audio (int16, part `audio` only). Even numbers are spoken by the
first speaker, odd ones by the second.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import time
from pathlib import Path

import numpy as np

from ouzel.english import spoken_form

from .corpus import corpus
from .lexicon import pronounce
from .teacher import SAMPLE_RATE, SPEAKERS, Teacher, prepare

SEEDS = {"audio": 1, "prefix": 2}
MAX_SYMBOLS = 220  # about 15 s


def speed(rng: random.Random) -> float:
    """Most sentences at the voice's own rate, every fifth faster or slower."""
    return 1.0 if rng.random() < 0.8 else rng.uniform(0.8, 1.25)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("build/voice"), help="folder of everything that is made")
    parser.add_argument("--part", choices=sorted(SEEDS), required=True)
    parser.add_argument("--minutes", type=float, required=True, help="speech to have in the end")
    parser.add_argument("--shard", default="0/1", help="i/n: make only every n-th utterance, from the i-th on")
    args = parser.parse_args()
    shard, shards = map(int, args.shard.split("/"))
    prepare(args.work / "teacher")
    teacher = Teacher(args.work / "teacher", audio=args.part == "audio")
    folder = args.work / args.part
    folder.mkdir(parents=True, exist_ok=True)
    made, began, spent = 0.0, time.monotonic(), 0.0
    speakers = itertools.cycle(SPEAKERS)
    rng = random.Random(SEEDS[args.part])
    for index, text in enumerate(corpus(SEEDS[args.part])):
        speaker, rate = next(speakers), speed(rng)
        if index // 2 % shards != shard:
            continue
        path = folder / f"{index:06d}.npz"
        form = spoken_form(text, pronounce)
        if not 2 < len(form) <= MAX_SYMBOLS:
            continue
        if path.exists():
            made += json.loads(str(np.load(path)["about"]))["seconds"]
        else:
            start = time.process_time()
            said = teacher.say(form, speaker, rate)
            spent += time.process_time() - start
            seconds = int(said.durations.sum()) / SAMPLE_RATE
            about = {"text": text, "form": form, "speaker": speaker, "speed": rate, "seconds": seconds}
            arrays = {"durations": said.durations.astype(np.int32), "pitch": said.pitch, "hidden": said.hidden}
            if said.audio is not None:
                arrays["audio"] = (said.audio.clip(-1, 1) * 32767).round().astype(np.int16)
            with open(path.with_suffix(".tmp"), "wb") as file:
                np.savez(file, about=json.dumps(about), **arrays)
            os.replace(path.with_suffix(".tmp"), path)
            made += seconds
            if index % 50 < 2:
                left = (args.minutes * 60 / shards - made) / max(made, 1) * (time.monotonic() - began)
                print(
                    f"{args.part} {made / 60:.1f} of {args.minutes / shards:.0f} min, {spent:.0f} core-s, "
                    f"{left / 60:.0f} min left",
                    flush=True,
                )
        if made >= args.minutes * 60 / shards:
            break
    print(f"{args.part}: {made / 60:.1f} min in {folder}")


if __name__ == "__main__":
    main()
