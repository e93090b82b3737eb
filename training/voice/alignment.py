"""Which letters of a word write which phones: one chunk of no, one or two phones a letter, found by expectation maximisation.

The sum over all alignments of a word is a dynamic programme over (letters read, phones said). Its gradient with respect to the
table of chunk scores is the expected count of each chunk; with the sum replaced by a maximum it is the best path. So one
function, differentiated by torch, does both steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import torch

LETTERS = "abcdefghijklmnopqrstuvwxyz"
_NEVER = -1e9
_ROUNDS = 8
_SAMPLE = 4  # the table is fitted on every fourth word
_BATCH = 4096
_RARE = 3.0  # a pair of phones on one letter must be met this often in the sample
Word = tuple[str, tuple[str, ...]]


def _bare(phone: str) -> str:
    return phone.rstrip("012")


def _batches(words: Sequence[Word]) -> Iterator[list[int]]:
    """Indices of words of equal length and equal number of phones."""
    shapes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for i, (word, phones) in enumerate(words):
        shapes[len(word), len(phones)].append(i)
    for indices in shapes.values():
        for start in range(0, len(indices), _BATCH):
            yield indices[start : start + _BATCH]


def _score(
    table: torch.Tensor, letters: torch.Tensor, phones: torch.Tensor, count: int, best: bool
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Log sum (or maximum) over alignments (B,), and for each letter chunk scores (B, P+1, 3) by phones said and chunk length."""
    size, length = letters.shape
    said = phones.shape[1]
    never = torch.full((size, 2), _NEVER)
    single = 1 + phones
    pair = 1 + count + phones[:, :-1] * count + phones[:, 1:]
    state = torch.full((size, said + 1), _NEVER)
    state[:, 0] = 0.0
    scores = []
    for i in range(length):
        row = table[letters[:, i]]
        chunk = torch.stack(
            [
                row[:, :1].expand(-1, said + 1),
                torch.cat([never[:, :1], row.gather(1, single)], 1),
                torch.cat([never, row.gather(1, pair)], 1)[:, : said + 1],
            ],
            2,
        )
        scores.append(chunk)
        before = torch.stack(
            [state, torch.cat([never[:, :1], state[:, :-1]], 1), torch.cat([never, state[:, :-2]], 1)[:, : said + 1]], 2
        )
        total = before + chunk
        state = total.max(2).values if best else torch.logsumexp(total, 2)  # max, not amax: ties must take one path
    return state[:, -1], scores


def align(words: Sequence[Word]) -> list[tuple[float, tuple[tuple[str, ...], ...]] | None]:
    """For each word the mean log probability of a letter, and a chunk of phones for each letter; None where there is no way."""
    names = sorted({_bare(phone) for _, phones in words for phone in phones})
    index = {name: i for i, name in enumerate(names)}
    count = len(names)
    table = torch.zeros(len(LETTERS), 1 + count + count * count)
    table[:, 0] = -1.0
    table[:, 1 + count :] = -3.0
    table = table.log_softmax(1)
    batches = []
    for indices in _batches(words):
        letters = torch.tensor([[LETTERS.index(letter) for letter in words[i][0]] for i in indices])
        phones = torch.tensor([[index[_bare(phone)] for phone in words[i][1]] for i in indices])
        batches.append((indices, letters, phones))
    for round_ in range(_ROUNDS):
        leaf = table.clone().requires_grad_()
        for _, letters, phones in batches:
            total, _ = _score(leaf, letters[::_SAMPLE], phones[::_SAMPLE], count, best=False)
            total[total > _NEVER / 2].sum().backward()
        counts = leaf.grad if leaf.grad is not None else torch.zeros_like(leaf)
        if round_ >= _ROUNDS // 2:
            counts[:, 1 + count :][counts[:, 1 + count :] < _RARE] = 0.0
        table = (counts / counts.sum(1, keepdim=True)).log().clamp_min(-25.0)
        table[counts == 0] = _NEVER
    out: list[tuple[float, tuple[tuple[str, ...], ...]] | None] = [None] * len(words)
    for indices, letters, phones in batches:
        total, scores = _score(table.clone().requires_grad_(), letters, phones, count, best=True)
        path = torch.autograd.grad(total.sum(), scores)
        lengths = torch.stack([step.sum(1).argmax(1) for step in path], 1).tolist()
        for i, score, row in zip(indices, total.tolist(), lengths, strict=True):
            if score > _NEVER / 2:
                rest = iter(words[i][1])
                out[i] = (score / len(row), tuple(tuple(next(rest) for _ in range(length)) for length in row))
    return out
