"""The training commands on a handful of made utterances: they learn, and they go on where they stopped."""

from __future__ import annotations

import json
import sys
from types import ModuleType

import numpy as np
import pytest
import torch
from training.voice import codec as coding
from training.voice import decoder, model, own, prosody, talker, vocoder
from training.voice.examples import Corpus, make_track, take
from training.voice.features import BANDS, HOP

from ouzel.models.qwen3_tts.prosody import Prosody
from ouzel.models.qwen3_tts.track import Track

FORM = ["HH", "AH0", "L", "OW1", " ", "W", "ER1", "L", "D", "."]
SMALL = {"hidden_size": 192, "intermediate_size": 64, "num_hidden_layers": 1}
DECODER = {"latent_dim": 32, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2}
DECODER |= {"num_key_value_heads": 2, "head_dim": 16, "decoder_dim": 32}


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A work folder as `make voice-data` and the codec's fit leave it: 24 short utterances of two speakers, with waveforms."""
    monkeypatch.setattr(model, "TALKER", model.TALKER | SMALL)
    monkeypatch.setattr(vocoder, "CONFIG", vocoder.CONFIG | DECODER)
    monkeypatch.setattr(decoder, "CONFIG", vocoder.CONFIG)
    monkeypatch.setattr(coding, "CODES", 16)
    rng = np.random.default_rng(0)
    values = []
    for part in ("audio", "seen-audio", "seen-prefix"):
        (tmp_path / part).mkdir()
    for index in range(24):
        durations = rng.integers(2, 6, len(FORM)) * 25.0
        seconds = 0.3 + durations.sum() / 1000 + 0.3
        tones = np.where(np.isin(FORM, [" ", ".", "HH"]), np.nan, rng.normal(0, 2, len(FORM))).astype(np.float32)
        spectrum = np.repeat(rng.normal(-4 + 2 * (index % 2), 0.5, (round(seconds * 20), BANDS)), 5, 0).astype(np.float16)
        pitch = np.full(len(spectrum) * HOP // 300, 150.0, np.float32)
        frames = int(durations.sum() / 80) + 3
        about = json.dumps({"text": "hello world", "form": FORM, "speaker": ("fern", "moss")[index % 2], "speed": 1.0})
        arrays = {"spectrum": spectrum, "pitch": pitch, "start": 24 * 220 // HOP * HOP, "frames": frames}
        for part in ("seen-audio", "seen-prefix"):
            np.savez(tmp_path / part / f"{index:06d}.npz", about=about, durations=durations, tones=tones, **arrays)
        time = np.arange(len(spectrum) * HOP) / 24000
        audio = (8000 * np.sin(2 * np.pi * 150 * time)).astype(np.int16)
        np.savez(tmp_path / "audio" / f"{index:06d}.npz", about=about, audio=audio)
        values.append(coding.features(spectrum, pitch, arrays["start"], frames))
    coding.fit(np.concatenate(values)).save(tmp_path / "codec.npz")
    return tmp_path


def run(monkeypatch, module: ModuleType, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", [module.__name__, *map(str, arguments)])
    module.main()


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("core-min")]


def test_the_talker_learns_and_goes_on(work, monkeypatch, capsys):
    run(monkeypatch, talker, "--work", work, "--steps", 10, "--rate", 1e-2)
    first = torch.load(work / "talker.pt", weights_only=False)
    corpus = Corpus(work / "seen-prefix")
    codec = coding.Codec.read(work / "codec.npz")
    track = Track.parse(first["track"])
    assert {0, 1} == {int(e.name) % 2 for e in corpus.tuning}
    assert track.size > 7 + track.levels * len(track.alphabet)
    run(monkeypatch, talker, "--work", work, "--steps", 80, "--rate", 1e-2)
    second = torch.load(work / "talker.pt", weights_only=False)
    assert (first["step"], second["step"]) == (10, 80)
    assert second["spent"] > first["spent"]
    assert second["track"] == first["track"]
    batch = talker.Batch([take(e, codec) for e in corpus.train[:8]], track)
    errors = []
    for state in (first, second):
        net = model.Voice(track, codec, state["spread"], dropout=0.0)
        net.register_buffer("weight", talker.weights(state["spread"]), persistent=False)
        net.register_buffer("variance", net.weight, persistent=False)
        net.load_state_dict(state["average"])
        with torch.no_grad():
            errors.append(float(talker.losses(net, batch, np.random.default_rng(0), 0.0)["error"]))
    assert errors[1] < 0.8 * errors[0], errors
    assert len(lines(capsys.readouterr().out)) >= 2


@pytest.mark.parametrize("extra", [(), ("--discriminator", 0.1)])
def test_the_decoder_learns_and_goes_on(work, monkeypatch, capsys, extra):
    monkeypatch.setattr(decoder, "CROP", 4)
    run(monkeypatch, decoder, "--work", work, "--steps", 6, *extra)
    first = torch.load(work / "decoder.pt", weights_only=False)
    run(monkeypatch, decoder, "--work", work, "--steps", 40, *extra)
    second = torch.load(work / "decoder.pt", weights_only=False)
    assert (first["step"], second["step"]) == (6, 40)
    assert np.array_equal(first["factors"], second["factors"])
    told = [[float(x) for x in line.split("(averaged)")[1].split()] for line in lines(capsys.readouterr().out)]
    assert told[-1][0] < 0.9 * told[0][0], told


def test_the_decoder_hears_what_the_talker_says(work, monkeypatch, capsys):
    run(monkeypatch, talker, "--work", work, "--steps", 10, "--rate", 1e-2)
    run(monkeypatch, own, "--work", work)
    assert "24 of 24 utterances" in capsys.readouterr().out
    codec = coding.Codec.read(work / "codec.npz")
    data = decoder.Data(work, codec)
    data.load()
    assert len(data.own) == len(data.items) == 24
    for index, example in enumerate(Corpus(work / "seen-audio").examples):
        assert [shift for shift, _ in data.own[index]] == list(own.SHIFTS)
        frames = min(len(take(example, codec, shift).codes) for shift in own.SHIFTS)  # the talker keeps to the teacher's track
        assert {len(vectors) for _, vectors in data.own[index]} == {min(frames, example.frames)}
    assert any(not torch.equal(data.own[i][0][1], cuts[0][: len(data.own[i][0][1])]) for i, (cuts, _) in enumerate(data.items))
    run(monkeypatch, own, "--work", work)  # all there
    assert "utterances" not in capsys.readouterr().out


def test_the_prosody_learns(work, monkeypatch, capsys):
    run(monkeypatch, prosody, "--work", work, "--minutes", 0.05)
    assert "length ratio" in capsys.readouterr().out
    about = json.loads((work / "prosody.json").read_text())
    ms, tones = Prosody.read(about, work / "prosody.safetensors").predict(FORM, "fern")
    assert len(ms) == len(tones) == len(FORM)
    assert 30 < ms[:-1].mean() < 200


def test_triples_that_occur_get_ids(work):
    corpus = Corpus(work / "seen-prefix")
    takes = [take(e, coding.Codec.read(work / "codec.npz"), i % 8) for i, e in enumerate(corpus.examples)]
    everything, common = make_track(takes, least=1), make_track(takes, least=3)
    assert len(everything.triples) > len(common.triples) > len(common.alphabet)
    for one in takes:
        ids = everything.ids(one.thirds, one.pitch)
        assert len(ids) == len(one.codes)
        first, second, third, _ = everything.parts(ids)
        named = np.stack([first, second, third], 1).ravel()
        assert named[: len(one.thirds) - 3].tolist() == one.thirds[3:].tolist()  # each id names the next frame
