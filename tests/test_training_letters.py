"""Training of letters to sounds, on a toy language: each letter one phone, x two, h none."""

from __future__ import annotations

import random

import pytest
import torch
from training.voice.alignment import align
from training.voice.letter_sounds import Network, Sample, distance, train

from ouzel.english.letter_sounds import LetterSounds, save_weights

_SAYS = {"a": ("AA0",), "b": ("B",), "d": ("D",), "e": ("EH1",), "h": (), "x": ("K", "S"), "m": ("M",)}


def toy_words(count: int) -> list[tuple[str, tuple[str, ...]]]:
    rng = random.Random(1)
    words = []
    for _ in range(count):
        letters = "e" + "".join(rng.choice("abdhxm") for _ in range(rng.randint(2, 6)))
        words.append((letters, tuple(phone for letter in letters for phone in _SAYS[letter])))
    return words


def test_alignment_finds_which_letter_says_what():
    words = toy_words(400)
    for (word, _), found in zip(words, align(words), strict=True):
        assert found is not None
        assert found[1] == tuple(_SAYS[letter] for letter in word)


def test_too_many_phones_for_the_letters_have_no_alignment():
    words = [*toy_words(50), ("b", ("B", "AA0", "D"))]
    assert align(words)[-1] is None


def test_numpy_scores_what_torch_was_trained_on(tmp_path):
    tags = sorted({" ".join(chunk) for chunk in _SAYS.values()})
    data = [
        Sample(["abcdefghijklmnopqrstuvwxyz".index(c) for c in word], [tags.index(" ".join(_SAYS[c])) for c in word])
        for word, _ in toy_words(900)
    ]
    network = train(data, tags, epochs=8)
    save_weights(tmp_path / "weights.npz", network.arrays(), tags)
    model = LetterSounds.load(tmp_path / "weights.npz")
    right = 0
    for word, phones in toy_words(40):
        right += model.pronounce(word) == phones
    assert right >= 36


def test_network_sees_no_chunk_of_the_letters_to_come():
    torch.manual_seed(0)
    network = Network(["", "AA0", "B", "EH1"]).eval()
    letters, tags = torch.tensor([[0, 1, 4, 1]]), torch.tensor([[1, 2, 3, 2]])
    other = tags.clone()
    other[0, 2] = 0
    with torch.no_grad():
        before, after = network(letters, tags), network(letters, other)
    assert torch.equal(before[0, :3], after[0, :3])
    assert not torch.equal(before[0, 3], after[0, 3])


@pytest.mark.parametrize(
    ("said", "meant", "edits"), [("abc", "abc", 0), ("abc", "ac", 1), ("", "ab", 2), ("kitten", "sitting", 3)]
)
def test_distance_counts_edits(said, meant, edits):
    assert distance(said, meant) == edits
