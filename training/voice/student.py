"""The spectrum without the waveform: a small network from the teacher's generator input to the envelope of what it would make.

Trained on the part of the corpus that has waveforms; then the nine tenths of the teacher's time that its generator takes are
saved for the rest. Codes of *all* utterances are made from this network's output, so that they have one distribution.

    python -m training.voice.student --work DIR --minutes 6
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from .features import BANDS, HOP, VOICED_HZ, Array, envelope
from .teacher import CHANNELS, SPEAKERS, STEP

WIDTH = 256


class Student(nn.Module):
    """hidden (B, 512, T) at 80 Hz, pitch (B, T) Hz, speaker (B,) -> (B, U, 64) log envelope at 100 Hz, U = T * 300 // 240."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(CHANNELS), requires_grad=False)
        self.scale = nn.Parameter(torch.ones(CHANNELS), requires_grad=False)
        self.speaker = nn.Embedding(len(SPEAKERS), WIDTH)
        self.into = nn.Conv1d(CHANNELS + 3, WIDTH, 3, padding=1)
        self.before = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 3, padding=1) for _ in range(2))
        self.after = nn.ModuleList(nn.Conv1d(WIDTH, WIDTH, 3, padding=1) for _ in range(2))
        self.out = nn.Conv1d(WIDTH, BANDS, 1)

    def forward(self, hidden: torch.Tensor, pitch: torch.Tensor, speaker: torch.Tensor) -> torch.Tensor:
        x = (hidden - self.mean[:, None]) / self.scale[:, None]
        log = (pitch.clamp(min=1) / 100).log()
        x = self.into(torch.cat([x, torch.stack([log, (pitch > VOICED_HZ).float(), pitch / 200], 1)], 1))
        x = x + self.speaker(speaker)[:, :, None]
        for layer in self.before:
            x = x + layer(F.gelu(x))
        x = _resampled(x)
        for layer in self.after:
            x = x + layer(F.gelu(x))
        return self.out(F.gelu(x)).transpose(1, 2)


def _resampled(x: torch.Tensor) -> torch.Tensor:
    """(B, C, T) at 80 Hz -> (B, C, U) at 100 Hz, linear, centre to centre."""
    count = x.shape[2] * STEP // HOP
    at = ((torch.arange(count) + 0.5) * HOP / STEP - 0.5).clamp(0, x.shape[2] - 1)
    low = at.floor().long().clamp(max=max(x.shape[2] - 2, 0))
    part = at - low
    return x[:, :, low] * (1 - part) + x[:, :, (low + 1).clamp(max=x.shape[2] - 1)] * part


def load(path: Path) -> Student:
    net = Student()
    net.load_state_dict(torch.load(path, weights_only=True)["net"])
    return net.eval()


@torch.no_grad()
def spectrum(net: Student, record: Any, speaker: str) -> Array:
    """The envelope (U, 64) of one utterance of `training.voice.data`."""
    hidden = torch.from_numpy(record["hidden"].astype(np.float32).T[None])
    pitch = torch.from_numpy(record["pitch"][None])
    out: Array = net(hidden, pitch, torch.tensor([list(SPEAKERS).index(speaker)]))[0].numpy()
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("build/voice"))
    parser.add_argument("--minutes", type=float, default=6.0, help="core-minutes of training")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    data = []
    for path in sorted((args.work / "audio").glob("*.npz")):
        record = np.load(path)
        about = json.loads(str(record["about"]))
        target = envelope(record["audio"].astype(np.float32) / 32767, record["pitch"])
        speaker = list(SPEAKERS).index(about["speaker"])
        data.append((record["hidden"].astype(np.float32).T, record["pitch"], speaker, target))
    test, train = data[::20], [item for i, item in enumerate(data) if i % 20]
    net = Student()
    stacked = np.concatenate([item[0] for item in train[:200]], 1)
    net.mean.data = torch.from_numpy(stacked.mean(1))
    net.scale.data = torch.from_numpy(stacked.std(1) + 1e-3)
    net.out.bias.data = torch.from_numpy(np.concatenate([item[3] for item in train[:200]]).mean(0))
    optimiser = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], 2e-3, weight_decay=0.01)
    began, step, report, losses = time.process_time(), 0, 0.0, []
    crop = 128
    usable = [item for item in train if item[0].shape[1] > crop]
    while (done := (time.process_time() - began) / 60 / args.minutes) < 1:
        for group in optimiser.param_groups:
            group["lr"] = 2e-3 * min(1, (step + 1) / 50) * (1 - done) + 1e-5
        batch = []
        for index in rng.integers(0, len(usable), 8):
            hidden, pitch, speaker, target = usable[index]
            at = int(rng.integers(0, (hidden.shape[1] - crop) // 4 + 1)) * 4
            sub = at * STEP // HOP
            batch.append((hidden[:, at : at + crop], pitch[at : at + crop], speaker, target[sub : sub + crop * STEP // HOP]))
        hidden, pitch, speaker, target = (torch.as_tensor(np.stack(column)) for column in zip(*batch, strict=True))
        error = (net(hidden, pitch, speaker) - target)[:, 4:-4]
        loss = error.square().mean() + error.abs().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(error.detach().abs().mean()))
        step += 1
        if time.process_time() - began > report:
            report += 30
            held = []
            with torch.no_grad():
                for hidden, pitch, speaker, target in test[:20]:
                    made = net(torch.from_numpy(hidden[None]), torch.from_numpy(pitch[None]), torch.tensor([speaker]))[0].numpy()
                    held.append(np.abs(made - target[: len(made)]).mean())
            print(
                f"core-s {time.process_time() - began:.0f} step {step} L1 train {np.mean(losses[-100:]):.3f} "
                f"held {np.mean(held):.3f} nepers",
                flush=True,
            )
            torch.save({"net": net.state_dict()}, args.work / "student.pt")
    torch.save({"net": net.state_dict()}, args.work / "student.pt")


if __name__ == "__main__":
    main()
