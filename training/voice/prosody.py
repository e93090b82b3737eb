"""Train the front end's durations and pitch on the teacher's.

python -m training.voice.prosody --work DIR --minutes 5      # writes prosody.safetensors and prosody.json
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ouzel.english.phones import BREAK, MARKS, SYMBOLS
from ouzel.models.qwen3_tts.prosody import KERNEL, UNIT_MS, Prosody, is_voiced

from . import examples as data
from .teacher import SPEAKERS

WIDTH = 128
DILATIONS = (1, 2, 4, 8, 1)
BATCH = 32
DROPOUT = 0.1


class Net(nn.Module):
    """The network of `ouzel.models.qwen3_tts.prosody` for batches: symbols (B, T), speaker (B,) -> (B, T, 2)."""

    def __init__(self) -> None:
        super().__init__()
        self.symbol = nn.Parameter(torch.randn(len(SYMBOLS) + 1, WIDTH) * 0.5)
        self.speaker = nn.Parameter(torch.randn(len(SPEAKERS), WIDTH) * 0.2)
        self.weight = nn.ParameterList(
            nn.Parameter(torch.randn(KERNEL, WIDTH, WIDTH) / (KERNEL * WIDTH) ** 0.5) for _ in DILATIONS
        )
        self.bias = nn.ParameterList(nn.Parameter(torch.zeros(WIDTH)) for _ in DILATIONS)
        self.out = nn.Linear(WIDTH, 2)

    def forward(self, symbols: Tensor, speaker: Tensor, mask: Tensor) -> Tensor:
        x = (self.symbol[symbols] + self.speaker[speaker][:, None]) * mask
        for weight, bias, dilation in zip(self.weight, self.bias, DILATIONS, strict=True):
            y = F.dropout(F.silu(_normed(x)), DROPOUT, self.training) * mask
            y = F.conv1d(y.transpose(1, 2), weight.permute(2, 1, 0), padding=KERNEL // 2 * dilation, dilation=dilation)
            x = (x + y.transpose(1, 2) + bias) * mask
        return self.out(F.silu(_normed(x)))

    def exported(self) -> Prosody:
        arrays = {"symbol": self.symbol[:-1], "speaker": self.speaker, "out.weight": self.out.weight.T, "out.bias": self.out.bias}
        for layer, (weight, bias) in enumerate(zip(self.weight, self.bias, strict=True)):
            arrays |= {f"layer.{layer}.weight": weight, f"layer.{layer}.bias": bias}
        return Prosody(SYMBOLS, tuple(SPEAKERS), DILATIONS, {k: v.detach().numpy().copy() for k, v in arrays.items()})


def _normed(x: Tensor) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()


def batch(items: list[data.Example]) -> tuple[Tensor, ...]:
    """symbols, speakers, mask, log durations, their weights, tones, their weights."""
    index = {symbol: i for i, symbol in enumerate(SYMBOLS)}
    longest = max(len(e.form) for e in items)
    symbols = torch.full((len(items), longest), len(SYMBOLS))
    targets = torch.zeros(len(items), longest, 4)  # log duration, weight, tone, weight
    for row, e in enumerate(items):
        n = len(e.form)
        symbols[row, :n] = torch.tensor([index[s] for s in e.form])
        targets[row, :n, 0] = torch.from_numpy(np.log1p(e.durations * e.speed / UNIT_MS))
        targets[row, :n, 1] = torch.tensor([1.0] * (n - 1) + [0.0 if e.form[-1] in MARKS else 1.0])
        targets[row, :n, 2] = torch.from_numpy(np.nan_to_num(e.tones))
        targets[row, :n, 3] = torch.tensor(
            [float(is_voiced(s) and not np.isnan(t)) for s, t in zip(e.form, e.tones, strict=True)]
        )
    speakers = torch.tensor([list(SPEAKERS).index(e.speaker) for e in items])
    return symbols, speakers, (symbols < len(SYMBOLS))[:, :, None].float(), *targets.unbind(2)


def report(prosody: Prosody, items: list[data.Example]) -> str:
    """Errors of the numpy network on examples."""
    phones, tones, ratios = [], [], []
    for e in items:
        ms, semitones = prosody.predict(e.form, e.speaker, e.speed)
        real = np.array([s not in MARKS and s != BREAK for s in e.form])
        phones.append(np.abs(ms - e.durations)[real])
        known = ~np.isnan(e.tones)
        tones.append(np.abs(semitones - e.tones)[known])
        ratios.append(ms[:-1].sum() / max(e.durations[:-1].sum(), 1))
    return (
        f"phones {np.concatenate(phones).mean():.1f} ms, pitch {np.concatenate(tones).mean():.2f} semitones, "
        f"length ratio {np.mean(ratios):.3f} +- {np.std(ratios):.3f}"
    )


def calibrate(net: Net, items: list[data.Example], rounds: int = 6) -> None:
    """Shift all log durations so that sentences are as long as the teacher's on average: a mean of logs is too short."""
    for _ in range(rounds):
        prosody = net.exported()
        made = sum(float(prosody.predict(e.form, e.speaker, e.speed)[0][:-1].sum()) for e in items[:300])
        true = sum(float(e.durations[:-1].sum()) for e in items[:300])
        net.out.bias.data[0] += float(np.log(true / made))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("build/voice"))
    parser.add_argument("--minutes", type=float, default=5.0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    corpus = data.Corpus(args.work / "seen-prefix")
    train, tuning = corpus.train, corpus.tuning
    net = Net()
    optimiser = torch.optim.AdamW(net.parameters(), 2e-3, weight_decay=0.02)
    began, step, shown, seen = time.process_time(), 0, 30.0, []
    while (done := (time.process_time() - began) / (args.minutes * 60)) < 1:
        for group in optimiser.param_groups:
            group["lr"] = 2e-3 * min(1, (step + 1) / 50) * (1 - done) + 1e-5
        symbols, speakers, mask, log, log_weight, tone, tone_weight = batch([train[i] for i in rng.choice(len(train), BATCH)])
        net.train()
        out = net(symbols, speakers, mask)
        duration = (F.smooth_l1_loss(out[..., 0], log, beta=0.2, reduction="none") * log_weight).sum() / log_weight.sum()
        pitch = (F.smooth_l1_loss(out[..., 1], tone, beta=0.5, reduction="none") * tone_weight).sum() / tone_weight.sum()
        optimiser.zero_grad()
        (4 * duration + 0.5 * pitch).backward()
        optimiser.step()
        step += 1
        seen.append((float(duration.detach()), float(pitch.detach())))
        if time.process_time() - began > shown:
            shown += 30
            net.eval()
            print(f"step {step} train {np.mean(seen[-50:], 0)} | held {report(net.exported(), tuning)}", flush=True)
    net.eval()
    calibrate(net, train)
    prosody = net.exported()
    prosody.save(args.work / "prosody.safetensors")
    (args.work / "prosody.json").write_text(json.dumps(prosody.value()), encoding="utf-8")
    print(report(Prosody.read(prosody.value(), args.work / "prosody.safetensors"), tuning))


if __name__ == "__main__":
    main()
