"""The codec's encoder side: principal components of a frame's features and sixteen codebooks on disjoint sets of them.

Product-quantised levels fit the official quantiser's form: a codeword of group g is zero outside its own components, so that
the sum over groups is the frame. Unlike residual levels, each is a function of the frame alone, which makes them far easier to
predict. Group 0 holds the strongest components of the spectrum, the last two pitch and voicing.

    python -m training.voice.codec --work DIR     # fits codec.npz, then keeps each utterance's spectrum and alignment in seen-*/
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from . import student
from .align import Aligned, align
from .features import BANDS, HOP, PITCH_WEIGHT, SIZE, SUB, Array, frames, pitch_and_voicing

GROUPS = 16
DIMS = 128
CODES = 256
CENTS = 1200 / np.log(2)  # of a neper of frequency
SPECTRUM = SUB * BANDS
TONE_GROUPS = ((0, 1), (2, 3, 4, 5, 6, 7))  # of the eight pitch and voicing components


@dataclass(frozen=True)
class Codec:
    """mean (SIZE,), basis (SIZE, 128), books (16, CODES, 128) float32; parts: the components outside which a book is zero."""

    mean: Array
    basis: Array
    books: Array
    parts: tuple[tuple[int, ...], ...]

    def components(self, features: Array) -> Array:
        return np.asarray((features - self.mean) @ self.basis, np.float32)

    def encode(self, components: Array) -> np.ndarray:
        """(n, 128) -> (n, 16) int16 nearest codes."""
        codes = np.empty((len(components), GROUPS), np.int16)
        for group, part in enumerate(self.parts):
            book = self.books[group][:, part]
            codes[:, group] = (np.square(book).sum(1) - 2 * components[:, part] @ book.T).argmin(1)
        return codes

    def decode(self, codes: np.ndarray) -> Array:
        """(n, 16) -> (n, 128) components."""
        return np.asarray(sum(self.books[group][codes[:, group]] for group in range(GROUPS)), np.float32)

    def coarser(self, least: float = 0.75) -> Codec:
        """With levels of codebook 0 at least so far apart (of components); those between two of them lie out of reach, so no code
        is renamed.

        Fine levels, of which silence has most, share the probability of one, and float32 cannot always tell them apart.
        """
        books, part = self.books.copy(), list(self.parts[0])
        levels = books[0][:, part]
        beyond = levels[:, 0].max() + 10
        kept: list[Array] = []
        for code in levels[:, 0].argsort():
            if all(np.square(levels[code] - other).sum() >= least**2 for other in kept):
                kept.append(levels[code])
            else:
                books[0, code, part[0]] = beyond
        return replace(self, books=books)

    def save(self, path: Path) -> None:
        np.savez(path, mean=self.mean, basis=self.basis, books=self.books, parts=json.dumps(self.parts))

    @classmethod
    def read(cls, path: Path) -> Codec:
        value = np.load(path)
        return cls(value["mean"], value["basis"], value["books"], tuple(map(tuple, json.loads(str(value["parts"])))))


def features(spectrum: Array, pitch: Array, start: int, count: int) -> Array:
    """(count, SIZE) features of codec frames from sample `start` on, a multiple of 240; the ends go on as they are."""
    rows = np.clip(np.arange(count * SUB) + start // HOP, 0, len(spectrum) - 1)
    return frames(spectrum[rows].astype(np.float32), *pitch_and_voicing(pitch, count * SUB // 2, start))


def seen(net: student.Student, record: dict[str, np.ndarray], about: dict[str, Any]) -> tuple[Array, Aligned]:
    """The spectrum (n, 64) at 100 Hz of a whole utterance, and its alignment, the start on a multiple of 10 ms."""
    whole = student.spectrum(net, record, about["speaker"])
    aligned = align(about["form"], record["durations"], record["pitch"], whole)
    return whole, replace(aligned, start=round(aligned.start / HOP) * HOP)


def records(folder: Path) -> Iterator[tuple[Path, dict[str, np.ndarray], dict[str, Any]]]:
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as value:
            record = {name: value[name] for name in ("durations", "pitch", "hidden")}
            yield path, record, json.loads(str(value["about"]))


def fit(values: Array, seed: int = 0) -> Codec:
    """values (n, SIZE)."""
    mean = values.mean(0)
    basis = np.zeros((SIZE, DIMS), np.float32)
    tones = SIZE - SPECTRUM
    for rows, columns in ((slice(0, SPECTRUM), slice(0, DIMS - tones)), (slice(SPECTRUM, SIZE), slice(DIMS - tones, DIMS))):
        centred = (values[:, rows] - mean[rows]).astype(np.float64)
        _, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
        basis[rows, columns] = vectors[:, ::-1][:, : columns.stop - columns.start]
    components = (values - mean) @ basis
    parts = (
        *_balanced(components[:, : DIMS - tones].var(0), GROUPS - 2),
        *(tuple(DIMS - tones + i for i in g) for g in TONE_GROUPS),
    )
    books = np.zeros((GROUPS, CODES, DIMS), np.float32)
    for group, part in enumerate(parts):
        books[group][:, part] = _kmeans(torch.from_numpy(np.ascontiguousarray(components[:, part])), CODES, seed + group).numpy()
    return Codec(mean, basis, books, parts)


def _balanced(variances: np.ndarray, count: int) -> tuple[tuple[int, ...], ...]:
    """Consecutive runs of components (strongest first) such that equal codebooks serve them equally well.

    At high rate the distortion of a part of d components is about d (prod var)^(1/d) K^(-2/d): the longest runs go to the
    weakest components. Each part takes components until its distortion reaches the smallest bound that needs `count` parts.
    """

    def parts(bound: float) -> list[tuple[int, ...]]:
        out: list[tuple[int, ...]] = []
        run: list[int] = []
        for index in range(len(variances)):
            grown = [*run, index]
            d = len(grown)
            cost = d * float(np.exp(np.log(variances[grown]).mean())) * CODES ** (-2 / d)
            if run and cost > bound:
                out.append(tuple(run))
                run = [index]
            else:
                run = grown
        return [*out, tuple(run)]

    low, high = 0.0, float(variances.sum())
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if len(parts(middle)) > count else (low, middle)
    found = parts(high)
    while len(found) < count:  # split the longest
        longest = max(range(len(found)), key=lambda i: len(found[i]))
        run_ = found[longest]
        found[longest : longest + 1] = [run_[: len(run_) // 2], run_[len(run_) // 2 :]]
    return tuple(found)


def _kmeans(values: torch.Tensor, count: int, seed: int, rounds: int = 25) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = values[torch.randperm(len(values), generator=generator)[:60000]]
    centres = values[:count].clone()
    for _ in range(rounds):
        nearest = (centres.square().sum(1) - 2 * values @ centres.T).argmin(1)
        size = torch.bincount(nearest, minlength=count)
        centres = torch.zeros_like(centres).index_add_(0, nearest, values) / size.clamp(min=1)[:, None]
        empty = torch.nonzero(size == 0)[:, 0]
        centres[empty] = values[torch.randint(len(values), (len(empty),), generator=generator)]
    return centres


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("build/voice"))
    parser.add_argument("--fit", type=int, default=1500, help="utterances to fit on")
    args = parser.parse_args()
    torch.set_num_threads(1)
    net = student.load(args.work / "student.pt")
    if not (args.work / "codec.npz").exists():
        made = []
        for index, (_, record, about) in enumerate(records(args.work / "prefix")):
            if index >= args.fit:
                break
            spectrum, aligned = seen(net, record, about)
            made.append(features(spectrum, record["pitch"], aligned.start, aligned.frames))
        values, test = np.concatenate(made[: -len(made) // 10]), np.concatenate(made[-len(made) // 10 :])
        codec = fit(values)
        error = codec.decode(codec.encode(codec.components(test))) @ codec.basis.T + codec.mean - test
        print(f"{len(values)} frames; parts {[len(p) for p in codec.parts]}")
        cents = np.abs(error[:, SPECTRUM : SPECTRUM + SUB // 2]).mean() / PITCH_WEIGHT * CENTS
        print(f"held out: spectrum L1 {np.abs(error[:, :SPECTRUM]).mean():.3f} nepers, pitch {cents:.0f} cents")
        c = codec.components(test)
        print("relative distortion %.4f" % (np.square(codec.decode(codec.encode(c)) - c).sum() / np.square(c).sum()))
        codec.save(args.work / "codec.npz")
    codec = Codec.read(args.work / "codec.npz")
    for part in ("audio", "prefix"):
        began, count = time.monotonic(), 0
        out = args.work / f"seen-{part}"
        out.mkdir(exist_ok=True)
        for path, record, about in records(args.work / part):
            if (out / path.name).exists():
                continue
            spectrum, aligned = seen(net, record, about)
            with open(out / "new.tmp", "wb") as file:
                np.savez(
                    file, about=json.dumps(about), spectrum=spectrum.astype(np.float16), pitch=record["pitch"],
                    start=aligned.start, frames=aligned.frames, durations=aligned.durations, tones=aligned.tones,
                )  # fmt: skip
            (out / "new.tmp").rename(out / path.name)
            count += 1
            if count % 200 == 0:
                print(f"seen of {part}: {count} in {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
