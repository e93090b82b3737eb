"""Free-running word error rate on sentences set apart: the figure that talker and decoder are steered by.

python -m training.voice.gate --work DIR [--count 24] [--true-track] [--codes true|own] [--wav DIR]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from ouzel.models.qwen3_tts.prosody import Prosody
from ouzel.models.qwen3_tts.track import Track

from . import examples as data
from .codec import Codec
from .features import Array
from .judge import Listener, mos, wer
from .model import Voice
from .vocoder import Vocoder


def vocoder(work: Path) -> tuple[Vocoder, np.ndarray]:
    """The averaged decoder and the factors of its input."""
    state = torch.load(work / "decoder.pt", weights_only=False)
    net = Vocoder(state["config"], state["units"])
    net.load_state_dict(state["average"])
    return net.eval(), state["factors"]


def voice(work: Path, codec: Codec) -> tuple[Voice, Track, dict[str, float]]:
    """The averaged talker, its track, and the mean pitch of its speakers in semitones from 150 Hz."""
    state = torch.load(work / "talker.pt", weights_only=False)
    track = Track.parse(state["track"])
    net = Voice(track, codec, state["spread"], dropout=0.0)
    net.load_state_dict(state["average"])
    return net.eval(), track, dict(state["means"])


@torch.no_grad()
def audio(net: Vocoder, factors: np.ndarray, codec: Codec, codes: np.ndarray) -> Array:
    """float32 samples at 24 kHz of codes (T, 16)."""
    vectors = torch.from_numpy((codec.decode(codes) * factors).astype(np.float32))
    out: Array = net(vectors.T[None])[0].clamp(-1, 1).numpy()
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("build/voice"))
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument(
        "--true-track", action="store_true", help="the teacher's durations and pitch instead of the prosody model's"
    )
    parser.add_argument("--codes", choices=("true", "own"), default="own", help="the teacher's codes or the talker's")
    parser.add_argument("--wav", type=Path, help="folder for what was heard")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    codec = Codec.read(args.work / "codec.npz")
    examples = [e for e in data.Corpus(args.work / "seen-prefix").tuning if e.frames > 12][: args.count]
    chosen = [data.take(e, codec) for e in examples]
    decoder, factors = vocoder(args.work)
    if args.codes == "true":
        codes = [e.codes for e in chosen]
    else:
        net, track, _ = voice(args.work, codec)
        ids = []
        for e, one in zip(examples, chosen, strict=True):
            tracked = (one.thirds, one.pitch)
            if not args.true_track:
                prosody = Prosody.read(json.loads((args.work / "prosody.json").read_text()), args.work / "prosody.safetensors")
                tracked = prosody.track(e.form, e.speaker, {s: i for i, s in enumerate(data.ALPHABET)}, e.speed)
            ids.append(torch.from_numpy(track.ids(*tracked)))
        began = time.process_time()
        codes = net.generate(ids, [e.speaker for e in chosen])
        beyond = [len(made) - len(text) for made, text in zip(codes, ids, strict=True)]
        print(f"generated in {time.process_time() - began:.0f} core-s; frames beyond the text {beyond}")
    sounds = [audio(decoder, factors, codec, c) for c in codes]
    listener, total = Listener(), {}
    for e, sound in zip(chosen, sounds, strict=True):
        heard = listener.transcribe(sound)
        errors, words, *_ = wer(e.text, heard)
        entry = total.setdefault(e.speaker, [0, 0, []])
        entry[0] += errors
        entry[1] += words
        entry[2].append(sound)
        print(f"{e.speaker} {errors}/{words} | {e.text} | {heard}")
        if args.wav:
            import soundfile

            args.wav.mkdir(parents=True, exist_ok=True)
            soundfile.write(args.wav / f"{e.name}-{e.speaker}.wav", sound, 24000)
    for speaker, (errors, words, made) in total.items():
        print(f"{speaker}: WER {errors / words:.3f}, DNSMOS OVRL {np.mean([mos(s)[2] for s in made[:8]]):.2f}")
    print(f"all: WER {sum(v[0] for v in total.values()) / sum(v[1] for v in total.values()):.3f}")


if __name__ == "__main__":
    main()
