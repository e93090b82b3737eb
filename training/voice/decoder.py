"""`make voice-codec`, second half: train the codec decoder to turn the codes' vectors into the teacher's waveforms.

Spectral losses at four resolutions; phase is free. Resumable: a checkpoint with the optimiser's state every minute.

    python -m training.voice.decoder --work DIR --minutes 80 [--discriminator 0.25]

Where `training.voice.own` has left the talker's own codes, they are learned from too: the fine-tuning at the end.
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

from . import own
from .codec import Codec, features
from .features import FRAME, HOP, SUB, mel_bank
from .vocoder import CONFIG, Vocoder

SHIFT = 480  # samples by which sound follows its code: a causal network hears 20 ms of what comes
SHIFTS = SUB  # cuts of one utterance into frames, 10 ms apart
SIZES = (256, 512, 1024, 2048)
CROP, BATCH = 10, 4
QUIET = 5e-5  # of a full-scale sine, -86 dB: what is below does not count, or silence would weigh as much as speech
PATCH = (4, 4)  # mel bands and steps of 10.7 ms over which powers are averaged: formants and bursts, not their grain
WORDS = slice(24, 56)  # mel bands of 1 to 4.3 kHz, whose patches tell words: they count twice
LEFT = 1  # frames at a crop's start that are not judged: their past is missing


def scales(spread: np.ndarray) -> np.ndarray:
    """(128,) factors that bring components of very different strength nearer to each other; spread: their deviations."""
    return np.asarray(1 / np.sqrt(np.maximum(spread, 1e-3)), np.float32)


class Spectra(nn.Module):
    """How far two waveforms' spectra are apart: (log magnitude L1, spectral convergence, log mel L1, log of patches L1)."""

    def __init__(self) -> None:
        super().__init__()
        self.windows = nn.ParameterList(nn.Parameter(torch.hann_window(size), requires_grad=False) for size in SIZES)
        self.bank = nn.Parameter(mel_bank(1024, 80), requires_grad=False)

    def magnitudes(self, wave: Tensor) -> list[Tensor]:
        out = []
        for size, window in zip(SIZES, self.windows, strict=True):
            spectrum = torch.stft(wave, size, size // 4, window=window, return_complex=True)
            out.append((spectrum.real.square() + spectrum.imag.square()).clamp(min=1e-8).sqrt())
        return out

    def forward(self, made: Tensor, true: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        with torch.no_grad():
            wanted = self.magnitudes(true)
        log = convergence = mel = patch = torch.zeros(())
        for size, a, b in zip(SIZES, self.magnitudes(made), wanted, strict=True):
            floor = QUIET * size / 4  # a Hann window's sum, halved
            log = log + ((a + floor).log() - (b + floor).log()).abs().mean()
            convergence = convergence + (a - b).norm() / b.norm().clamp(min=1e-2)
            if size == 1024:
                one, other = self.bank @ a, self.bank @ b
                mel = ((one + floor).log() - (other + floor).log()).abs().mean()
                patch = 0.5 * (_patches(one, floor) - _patches(other, floor)).abs()
                step = PATCH[0] // 2
                patch = patch.mean() + patch[:, WORDS.start // step : WORDS.stop // step].mean()
        return log / len(SIZES), convergence / len(SIZES), mel, patch


def _patches(mel: Tensor, floor: float) -> Tensor:
    """Log of the mean power of overlapping patches of magnitudes (B, bands, steps)."""
    return (F.avg_pool2d(mel.square(), PATCH, (PATCH[0] // 2, PATCH[1] // 2)) + floor * floor).log()


Item = tuple[list[Tensor], list[tuple[int, Tensor]], Tensor]


class Data:
    """Utterances with waveforms: vectors (T, 128) of eight cuts into frames, each 10 ms before the last, and samples; sound is
    SHIFT late. The sample where cut k begins is (7 - k) * 240. own: further cuts, of what the talker made of the text."""

    def __init__(self, work: Path, codec: Codec) -> None:
        self.own: dict[int, list[tuple[int, Tensor]]] = {}
        self.items: list[tuple[list[Tensor], Tensor]] = []
        self._seen: set[str] = set()
        self._work, self._codec = work, codec
        self.factors = np.ones(128, np.float32)

    def load(self) -> None:
        for path in sorted((self._work / "seen-audio").glob("*.npz")):
            if path.name in self._seen or path.name.startswith("."):
                continue
            self._seen.add(path.name)
            with np.load(path) as value, np.load(self._work / "audio" / path.name) as record:
                start, count, spectrum, pitch = int(value["start"]), int(value["frames"]), value["spectrum"], value["pitch"]
                audio = record["audio"].astype(np.float32) / 32767
            cuts = []
            for shift in range(SHIFTS):
                found = self._codec.components(features(spectrum, pitch, start - shift * HOP, count))
                cuts.append(torch.from_numpy((self._codec.decode(self._codec.encode(found)) * self.factors).astype(np.float32)))
            made = self._work / "own-audio" / path.name
            if made.exists():
                with np.load(made) as value:
                    codes = value["codes"][:, :count].astype(np.int64)
                found = [(self._codec.decode(c) * self.factors).astype(np.float32) for c in codes]
                self.own[len(self.items)] = [(s, torch.from_numpy(v)) for s, v in zip(own.SHIFTS, found, strict=True)]
            begin = start - (SHIFTS - 1) * HOP - SHIFT
            audio = np.pad(audio, (max(0, -begin), FRAME * (count + 1)))[max(begin, 0) :][: count * FRAME + (SHIFTS - 1) * HOP]
            self.items.append((cuts, torch.from_numpy(audio.copy())))

    def split(self) -> tuple[list[Item], list[Item]]:
        """Utterances to train on and to watch: vectors by cut, those of the talker, samples."""
        own_cuts = [[(s, v) for s, v in self.own.get(i, []) if len(v) > CROP] for i in range(len(self.items))]
        items = [(cuts, said, audio) for (cuts, audio), said in zip(self.items, own_cuts, strict=True)]
        train = [item for i, item in enumerate(items) if i % 25 != 7 and len(item[0][0]) > CROP]
        return train, [item for i, item in enumerate(items) if i % 25 == 7][:16]


class Discriminator(nn.Module):
    """Judges magnitudes over time at three resolutions: realness of small patches."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.nets = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(1, width, (7, 3), (3, 1), (3, 1)), nn.LeakyReLU(0.2),
                nn.Conv2d(width, width, (7, 3), (3, 2), (3, 1)), nn.LeakyReLU(0.2),
                nn.Conv2d(width, width, (5, 3), (2, 2), (2, 1)), nn.LeakyReLU(0.2),
                nn.Conv2d(width, 1, 3, 1, 1),
            )
            for _ in range(3)
        )  # fmt: skip

    def forward(self, magnitudes: list[Tensor]) -> list[list[Tensor]]:
        """What each net sees on its way, its verdict last."""
        out = []
        for net, m in zip(self.nets, magnitudes[1:], strict=True):
            x, seen = (m[:, None] + 0.05).log(), []
            for layer in net:
                x = layer(x)
                if not isinstance(layer, nn.LeakyReLU):
                    seen.append(x)
            out.append(seen)
        return out


def deceit(fake: list[list[Tensor]], real: list[list[Tensor]]) -> Tensor:
    """What the decoder has to lower: not being taken for real, and twice the distance of what is seen on the way."""
    loss = torch.zeros(())
    for a, b in zip(fake, real, strict=True):
        loss = loss + (1 - a[-1]).square().mean()
        for x, y in zip(a[:-1], b[:-1], strict=True):
            loss = loss + 2 * (x - y).abs().mean() / (y.abs().mean() + 1e-3) / len(a)
    return loss


def evaluate(net: Vocoder, spectra: Spectra, test: list[Item]) -> list[float]:
    """Mean losses over held-out utterances, of at most 40 frames each."""
    found = []
    with torch.no_grad():
        for cuts, own_cuts, audio in test:
            vectors, audio = own_cuts[0][1] if own_cuts else cuts[0], audio[(SHIFTS - 1) * HOP :]
            made = net(vectors[:40].T[None])
            skip = LEFT * FRAME
            found.append([float(x) for x in spectra(made[:, skip:], audio[None, skip : made.shape[1]])])
    return [float(x) for x in np.mean(found, 0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("build/voice"))
    parser.add_argument("--minutes", type=float, default=80.0, help="core-minutes in all, those of earlier runs included")
    parser.add_argument("--steps", type=int, help="stop after so many steps in all, whatever the minutes")
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--units", type=int, default=2, help="blocks with residual units")
    parser.add_argument("--own", type=float, default=0.7, help="share of the talker's own codes where there are any")
    parser.add_argument("--discriminator", type=float, default=0.0, help="weight of the adversarial loss")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    codec = Codec.read(args.work / "codec.npz")
    path = args.work / "decoder.pt"
    state = torch.load(path, weights_only=False) if path.exists() else None
    data = Data(args.work, codec)
    if state:
        data.factors = state["factors"]
    else:
        data.load()
        spread = torch.cat([cuts[0] for cuts, _ in data.items[:100]]).numpy().std(0)
        data = Data(args.work, codec)
        data.factors = scales(spread)
    data.load()
    net, spectra, judge = Vocoder(CONFIG, args.units), Spectra(), Discriminator()
    optimiser = torch.optim.AdamW(net.parameters(), args.rate, betas=(0.8, 0.99), weight_decay=0.01)
    critic = torch.optim.AdamW(judge.parameters(), 4e-4, betas=(0.8, 0.99))
    average = {name: value.clone() for name, value in net.state_dict().items()}
    step, spent = 0, 0.0
    if state:
        net.load_state_dict(state["net"])
        average = state["average"]
        optimiser.load_state_dict(state["optimiser"])
        if "judge" in state and args.discriminator:
            judge.load_state_dict(state["judge"])
            critic.load_state_dict(state["critic"])
        step, spent = state["step"], state["spent"]
    train, test = data.split()
    minutes = sum(len(cuts[0]) for cuts, _, _ in train) * 0.08 / 60
    print(
        f"{sum(p.numel() for p in net.parameters()) / 1e6:.2f} M parameters, {minutes:.1f} min",
        flush=True,
    )
    rng = np.random.default_rng(step)
    weights = np.array([len(cuts[0]) - CROP for cuts, _, _ in train], float)
    began, earlier, saved, losses = time.process_time(), spent, time.monotonic(), []
    done = 0.0
    while done < 1:
        spent = earlier + time.process_time() - began
        done = min((step + 1) / args.steps if args.steps else spent / (args.minutes * 60), 1)
        for group in optimiser.param_groups:
            group["lr"] = args.rate * min(1, (step + 1) / 100) * (0.03 + 0.97 * 0.5 * (1 + np.cos(np.pi * done)))
        vectors, audio = [], []
        for index in rng.choice(len(train), BATCH, p=weights / weights.sum()):
            cuts, own_cuts, whole = train[index]
            shift = int(rng.integers(SHIFTS))
            v = cuts[shift]
            if own_cuts and rng.random() < args.own:
                shift, v = own_cuts[rng.integers(len(own_cuts))]
            a = whole[(SHIFTS - 1 - shift) * HOP :]
            at = int(rng.integers(0, len(v) - CROP + 1))
            vectors.append(v[at : at + CROP].T)
            audio.append(a[at * FRAME : (at + CROP) * FRAME])
        made = net(torch.stack(vectors))[:, LEFT * FRAME :]
        true = torch.stack(audio)[:, LEFT * FRAME :]
        log, convergence, mel, patch = spectra(made, true)
        loss = log + convergence + mel + 2 * patch
        if args.discriminator:
            fake = spectra.magnitudes(made)
            for p in judge.parameters():
                p.requires_grad_(False)
            with torch.no_grad():
                real = spectra.magnitudes(true)
                seen = judge(real)
            lie = deceit(judge(fake), seen)
            loss = loss + args.discriminator * lie
            for p in judge.parameters():
                p.requires_grad_(True)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        optimiser.step()
        if args.discriminator:
            scores = zip(judge([m.detach() for m in fake]), judge(real), strict=True)
            verdict = sum(a[-1].square().mean() + (1 - b[-1]).square().mean() for a, b in scores)
            critic.zero_grad()
            verdict.backward()
            critic.step()
        step += 1
        decay = min(0.999, step / (step + 20))
        for name, value in net.state_dict().items():
            average[name].lerp_(value, 1 - decay) if value.dtype.is_floating_point else average[name].copy_(value)
        told = (float(lie.detach()), float(verdict.detach())) if args.discriminator else ()
        losses.append((float(log.detach()), float(convergence.detach()), float(mel.detach()), float(patch.detach()), *told))
        if time.monotonic() - saved > 60 or done >= 1:
            saved = time.monotonic()
            live = {name: value.clone() for name, value in net.state_dict().items()}
            net.load_state_dict(average)
            held = evaluate(net, spectra, test)
            net.load_state_dict(live)
            recent = np.mean(losses[-200:], 0)
            shown = " ".join(f"{x:.3f}" for x in recent), " ".join(f"{x:.3f}" for x in held)
            print(f"core-min {spent / 60:.1f} step {step} train {shown[0]} held (averaged) {shown[1]}", flush=True)
            whole = {"net": live, "average": average, "optimiser": optimiser.state_dict(), "step": step, "spent": spent}
            whole |= {"factors": data.factors, "config": CONFIG, "units": args.units}
            whole |= {"judge": judge.state_dict(), "critic": critic.state_dict()}
            torch.save(whole, path.with_suffix(".tmp"))
            os.replace(path.with_suffix(".tmp"), path)
            data.load()
            train, test = data.split()
            weights = np.array([len(cuts[0]) - CROP for cuts, _, _ in train], float)


if __name__ == "__main__":
    main()
