"""The talker's own codes for utterances whose waveform is known: what the decoder is fine-tuned on.

    python -m training.voice.own --work DIR

The talker runs freely on the teacher's track, so its frames lie where the teacher's do. One own-audio/*.npz an utterance: codes
(len(SHIFTS), T, 16). Resumable; `--again` makes them anew with a better talker.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

from . import examples as data
from .codec import Codec
from .gate import voice

SHIFTS = (0, 3, 6)  # cuts of an utterance into frames, of the decoder's eight
BATCH = 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("build/voice"))
    parser.add_argument("--again", action="store_true", help="also where there are codes already")
    args = parser.parse_args()
    torch.set_num_threads(1)
    codec = Codec.read(args.work / "codec.npz")
    net, track, means = voice(args.work, codec)
    out = args.work / "own-audio"
    out.mkdir(exist_ok=True)
    known = data.Corpus(args.work / "seen-audio", means).examples
    wanted = [e for e in known if args.again or not (out / f"{e.name}.npz").exists()]
    wanted.sort(key=lambda e: e.frames)
    began = time.monotonic()
    for at in range(0, len(wanted), BATCH):
        some = wanted[at : at + BATCH]
        made = []
        for shift in SHIFTS:
            takes = [data.take(e, codec, shift) for e in some]
            ids = [torch.from_numpy(track.ids(one.thirds, one.pitch)) for one in takes]
            codes = net.generate(ids, [e.speaker for e in some], limit=1)
            made.append([c[: len(one)] for c, one in zip(codes, ids, strict=True)])
        for index, e in enumerate(some):
            count = min(len(codes[index]) for codes in made)
            with open(out / "new.tmp", "wb") as file:
                np.savez(file, codes=np.stack([codes[index][:count] for codes in made]).astype(np.int16))
            (out / "new.tmp").rename(out / f"{e.name}.npz")
        done = at + len(some)
        left = (time.monotonic() - began) / done * (len(wanted) - done)
        print(f"{done} of {len(wanted)} utterances, {left:.0f} s left", flush=True)


if __name__ == "__main__":
    main()
