"""`make voice-talker`: train talker and code predictor on the aligned codes. Resumable, time-boxed.

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
from .codec import CODES, Codec
from .model import CODEC_IDS, Voice

BATCH = 4
PREDICTED = 0.3  # share of the frames on which the code predictor is trained in a step


class Batch:
    """Right-padded. text (B, T + 1) with the end id after each text; codes (B, T, 16); lengths (B,)."""

    def __init__(self, items: list[data.Take], track: Track) -> None:
        self.lengths = torch.tensor([len(e.codes) for e in items])
        longest = int(self.lengths.max())
        self.text = torch.zeros(len(items), longest + 1, dtype=torch.long)
        self.codes = torch.zeros(len(items), longest, 16, dtype=torch.long)
        for row, e in enumerate(items):
            ids = track.ids(e.halves, e.pitch)
            self.text[row, : len(ids)] = torch.from_numpy(ids)
            self.text[row, len(ids)] = 2
            self.codes[row, : len(e.codes)] = torch.from_numpy(e.codes)
        self.speakers = [e.speaker for e in items]


def hidden_states(net: Voice, batch: Batch, rng: np.random.Generator, noise: float) -> Tensor:
    """(B, T + 1, H): at position t what predicts frame t; the last predicts the end. noise: of the history, in deviations."""
    language = "english" if rng.random() < 0.5 else None
    prefix = torch.stack([net.prefix(speaker, language) for speaker in batch.speakers])
    vectors = net.vectors(batch.codes)
    if noise:
        strength = torch.rand(len(vectors), vectors.shape[1], 1) * noise
        vectors = vectors + strength * torch.randn_like(vectors)
        weak = torch.rand(len(vectors), vectors.shape[1], 1) < 0.2  # only the strongest components, or nothing
        keep = torch.arange(128) < torch.randint(0, 120, (len(vectors), vectors.shape[1], 1))
        vectors = torch.where(weak, vectors * keep, vectors)
    history = net.history(vectors)
    if noise:
        history = history * (torch.rand(*history.shape[:2], 1) >= 0.1)
    bos = net.codes([CODEC_IDS["codec_bos_id"]]).expand(len(vectors), 1, -1)
    rows = torch.cat([bos, history], 1) + net.text(batch.text)
    out, _ = net.talker(torch.cat([prefix, rows], 1))
    return out[:, prefix.shape[1] :]


def losses(net: Voice, batch: Batch, rng: np.random.Generator, noise: float, share: float) -> dict[str, Tensor]:
    hidden = hidden_states(net, batch, rng, noise)
    at = torch.arange(batch.codes.shape[1])
    valid = at < batch.lengths[:, None]
    states = hidden[:, :-1][valid]
    codes = batch.codes[valid]
    ends = hidden[torch.arange(len(hidden)), batch.lengths]
    logits = net.first_logits(torch.cat([states, ends]))
    wanted = torch.cat([codes[:, 0], torch.full((len(ends),), CODES)])
    error = (net.regress(states) - net.vectors(codes)).square()
    chosen = torch.from_numpy(rng.permutation(len(states))[: max(16, int(len(states) * share))])
    predicted = net.predict(states[chosen], codes[chosen])
    groups = torch.stack([F.cross_entropy(x, codes[chosen, g + 1]) for g, x in enumerate(predicted)])
    return {
        "first": F.cross_entropy(logits[: len(states)], wanted[: len(states)]),
        "end": F.cross_entropy(logits[len(states) :], wanted[len(states) :]),
        "error": (error * net.weight).sum(1).mean(),
        "groups": groups,
    }


def weights(spread: np.ndarray) -> Tensor:
    """(128,) of the squared error in unit spread: between variance and equal weights, sum 1."""
    return torch.from_numpy((spread / spread.sum()).astype(np.float32))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("build/voice"))
    parser.add_argument("--minutes", type=float, default=60.0, help="core-minutes in all, those of earlier runs included")
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
        takes = [data.take(e, codec, i % 8) for i, e in enumerate(corpus.examples)]
        track = data.make_track(takes)
        sample = np.concatenate([codec.decode(e.codes) for e in takes[:400]])
        spread = sample.std(0).astype(np.float32)
    net = Voice(track, codec, spread)
    net.register_buffer("weight", weights(spread), persistent=False)
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
    print(f"{size:.2f} M parameters, {hours:.2f} h, {len(track.pairs)} pairs, {track.size} text ids", flush=True)
    rng = np.random.default_rng(step)
    began, spent, saved, queue, seen = time.process_time(), earlier, time.monotonic(), [], []
    held_takes = [data.take(e, codec) for e in corpus.tuning[:36]]
    held = [Batch(held_takes[i : i + 12], track) for i in range(0, len(held_takes), 12)]
    train: list[data.Example] = []
    while spent < args.minutes * 60:
        spent = earlier + time.process_time() - began
        done = min(spent / (args.minutes * 60), 1)
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
        found = losses(net, Batch(takes, track), rng, args.noise, PREDICTED)
        loss = 0.5 * found["first"] + 0.1 * found["end"] + 6 * found["error"] + 0.1 * found["groups"].sum()
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
        step += 1
        decay = min(0.998, step / (step + 20))
        for name, value in net.state_dict().items():
            average[name].lerp_(value, 1 - decay)
        seen.append([float(found[k].detach()) for k in ("first", "end", "error")] + [float(found["groups"].detach().mean())])
        if time.monotonic() - saved > 60 or spent >= args.minutes * 60:
            saved = time.monotonic()
            live = {name: value.clone() for name, value in net.state_dict().items()}
            net.load_state_dict(average)
            net.eval()
            with torch.no_grad():
                test = [losses(net, batch, np.random.default_rng(1), 0.0, 0.5) for batch in held]
            net.load_state_dict(live)
            shown = " ".join(f"{k} {np.mean([float(t[k]) for t in test]):.3f}" for k in ("first", "end", "error"))
            groups_ = np.mean([t["groups"].numpy() for t in test], 0)
            some = " ".join(f"{groups_[i]:.2f}" for i in (0, 4, 9, 13, 14))
            recent = " ".join(f"{x:.3f}" for x in np.mean(seen[-100:], 0))
            print(
                f"core-min {spent / 60:.1f} step {step} train {recent} | held {shown} groups {groups_.mean():.3f} ({some})",
                flush=True,
            )
            whole = {"net": live, "average": average, "optimiser": optimiser.state_dict(), "step": step, "spent": spent}
            whole |= {"track": track.value(), "spread": spread, "means": corpus.means}
            torch.save(whole, path.with_suffix(".tmp"))
            os.replace(path.with_suffix(".tmp"), path)


if __name__ == "__main__":
    main()
