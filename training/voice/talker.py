"""`make voice-talker`: train the talker on the aligned codes. Resumable, time-boxed.

    python -m training.voice.talker --work DIR --minutes 60

What is watched is free-running speech on sentences set apart (`training.voice.gate`), not cross-entropy.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ouzel.models.qwen3_tts.track import Track

from . import examples as data
from .codec import Codec
from .model import CODEC_IDS, Voice

BATCH = 4
HEARD = 0.5  # share of the steps in which part of the history is what the talker itself would have said


class Batch:
    """Right-padded. text (B, T + 1) with the end id after each text; codes (B, T, 16); lengths (B,)."""

    def __init__(self, items: list[data.Take], track: Track) -> None:
        self.lengths = torch.tensor([len(e.codes) for e in items])
        longest = int(self.lengths.max())
        self.text = torch.zeros(len(items), longest + 1, dtype=torch.long)
        self.codes = torch.zeros(len(items), longest, 16, dtype=torch.long)
        for row, e in enumerate(items):
            ids = track.ids(e.thirds, e.pitch)
            self.text[row, : len(ids)] = torch.from_numpy(ids)
            self.text[row, len(ids)] = 2
            self.codes[row, : len(e.codes)] = torch.from_numpy(e.codes)
        self.speakers = [e.speaker for e in items]


def hidden_states(net: Voice, batch: Batch, vectors: Tensor, language: str | None) -> Tensor:
    """(B, T + 1, H): at position t what tells frame t; the last tells the end. vectors (B, T, 128): the history."""
    prefix = torch.stack([net.prefix(speaker, language) for speaker in batch.speakers])
    bos = net.codes([CODEC_IDS["codec_bos_id"]]).expand(len(prefix), 1, -1)
    rows = torch.cat([bos, net.history(vectors)], 1) + net.text(batch.text)
    out, _ = net.talker(torch.cat([prefix, rows], 1))
    return out[:, prefix.shape[1] :]


def corrupted(net: Voice, batch: Batch, rng: np.random.Generator, noise: float, language: str | None) -> Tensor:
    """The history (B, T, 128) to learn with: free running, the talker's past will not be the teacher's.

    Part of it is what the talker says to the true past, some frames are missing, the rest has noise (deviations).
    """
    vectors = net.vectors(batch.codes)
    shape = (len(vectors), vectors.shape[1], 1)
    if rng.random() < HEARD:
        with torch.no_grad():
            said = net.components(hidden_states(net, batch, vectors, language)[:, :-1])
        own = torch.rand(shape) < torch.rand(len(vectors), 1, 1)
        vectors = torch.where(own, said, vectors)
    strength = torch.rand(shape) * noise
    vectors = vectors + torch.randn_like(vectors) * strength * torch.rand(len(vectors), 1, 1)
    kept = torch.rand(shape) > torch.tensor(rng.choice([0.0, 0.15, 0.5], (len(vectors), 1, 1), p=[0.4, 0.4, 0.2]))
    return vectors * kept


def losses(net: Voice, batch: Batch, rng: np.random.Generator, noise: float) -> dict[str, Tensor]:
    language = "english" if rng.random() < 0.5 else None
    vectors = corrupted(net, batch, rng, noise, language) if noise else net.vectors(batch.codes)
    hidden = hidden_states(net, batch, vectors, language)
    valid = torch.arange(batch.codes.shape[1]) < batch.lengths[:, None]
    states, ends = hidden[:, :-1][valid], hidden[torch.arange(len(hidden)), batch.lengths]
    error = (net.components(states) - net.vectors(batch.codes[valid])).square()
    return {
        "error": (error * net.weight).sum(1).mean(),
        "flag": (states[:, -1] - 1).square().mean(),
        "end": F.softplus(net.end_logit(states)).mean() + F.softplus(-net.end_logit(ends)).mean(),
        "variance": (error * net.variance).sum(1).mean().detach(),
    }


def weights(spread: np.ndarray) -> Tensor:
    """(128,) of the squared error in unit spread: between variance and equal weights, sum 1."""
    return torch.from_numpy((spread / spread.sum()).astype(np.float32))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("build/voice"))
    parser.add_argument("--minutes", type=float, default=60.0, help="core-minutes in all, those of earlier runs included")
    parser.add_argument("--steps", type=int, help="stop after so many steps in all, whatever the minutes")
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--noise", type=float, default=0.6)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    codec = Codec.read(args.work / "codec.npz")
    corpus = data.Corpus(args.work / "seen-prefix")
    path = args.work / "talker.pt"
    state = torch.load(path, weights_only=False) if path.exists() else None
    if state:
        track, spread = Track.parse(state["track"]), state["spread"]
    else:
        takes = [data.take(e, codec, i % 8) for i, e in enumerate(corpus.train)]
        track = data.make_track(takes)
        sample = np.concatenate([codec.decode(e.codes) for e in takes[:400]])
        spread = sample.std(0).astype(np.float32)
    net = Voice(track, codec, spread)
    net.register_buffer("weight", weights(spread), persistent=False)
    net.register_buffer("variance", torch.from_numpy(np.square(spread) / np.square(spread).sum()), persistent=False)
    decayed = [p for p in net.parameters() if p.ndim > 1]
    plain = [p for p in net.parameters() if p.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": 0.03}, {"params": plain, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, args.rate, betas=(0.9, 0.98))
    average = {name: value.clone() for name, value in net.state_dict().items()}
    step, earlier = 0, 0.0
    if state:
        net.load_state_dict(state["net"])
        average = state["average"]
        optimiser.load_state_dict(state["optimiser"])
        step, earlier = state["step"], state["spent"]
    size = sum(p.numel() for p in net.parameters()) / 1e6
    hours = sum(e.frames for e in corpus.train) * 0.08 / 3600
    print(f"{size:.2f} M parameters, {hours:.2f} h, {len(track.triples)} triples, {track.size} text ids", flush=True)
    rng = np.random.default_rng(step)
    began, spent, saved, queue, seen = time.process_time(), earlier, time.monotonic(), [], []
    held_takes = [data.take(e, codec) for e in corpus.tuning[:36]]
    held = [Batch(held_takes[i : i + 12], track) for i in range(0, len(held_takes), 12)]
    train: list[data.Example] = []
    done = 0.0
    while done < 1:
        spent = earlier + time.process_time() - began
        done = min((step + 1) / args.steps if args.steps else spent / (args.minutes * 60), 1)
        for group in optimiser.param_groups:
            group["lr"] = args.rate * min(1, (step + 1) / 150) * (0.02 + 0.98 * 0.5 * (1 + np.cos(np.pi * done)))
        if not queue:
            corpus.refresh()  # what has been made meanwhile
            train = corpus.train
            lengths = np.array([e.frames for e in train])
            print(f"a new round of {lengths.sum() * 0.08 / 3600:.2f} h", flush=True)
            order = np.argsort(lengths + rng.random(len(lengths)) * 10)
            queue = [order[i : i + BATCH] for i in range(0, len(order), BATCH)]
            rng.shuffle(queue)
        net.train()
        takes = [data.take(train[i], codec, int(rng.integers(8))) for i in queue.pop()]
        found = losses(net, Batch(takes, track), rng, args.noise)
        loss = 6 * found["error"] + found["flag"] + 0.1 * found["end"]
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
        step += 1
        decay = min(0.998, step / (step + 20))
        for name, value in net.state_dict().items():
            average[name].lerp_(value, 1 - decay)
        seen.append([float(found[name].detach()) for name in found])
        if time.monotonic() - saved > 60 or done >= 1:
            saved = time.monotonic()
            live = {name: value.clone() for name, value in net.state_dict().items()}
            net.load_state_dict(average)
            net.eval()
            with torch.no_grad():
                test = [losses(net, batch, np.random.default_rng(1), 0.0) for batch in held]
            net.load_state_dict(live)
            shown = " ".join(f"{name} {np.mean([float(t[name]) for t in test]):.4f}" for name in found)
            recent = " ".join(f"{x:.4f}" for x in np.mean(seen[-200:], 0))
            print(f"core-min {spent / 60:.1f} step {step} train {recent} | held {shown}", flush=True)
            whole = {"net": live, "average": average, "optimiser": optimiser.state_dict(), "step": step, "spent": spent}
            whole |= {"track": track.value(), "spread": spread, "means": corpus.means}
            torch.save(whole, path.with_suffix(".tmp"))
            os.replace(path.with_suffix(".tmp"), path)


if __name__ == "__main__":
    main()
