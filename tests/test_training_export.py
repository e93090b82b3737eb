"""The trainable networks and what becomes of them: a checkpoint in the official layout that says the same.

Small, with random weights: what is checked is that factorised tables, heads and the decoder mean what the product makes of them.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import torch
from training.voice import codec as coding
from training.voice import export, model, vocoder
from training.voice.align import align
from training.voice.codec import CODES, SPECTRUM, Codec, fit
from training.voice.examples import ALPHABET
from training.voice.features import FRAME, SIZE, envelope
from training.voice.gate import audio
from training.voice.gate import voice as trained

from ouzel.adapters import TalkerSampling
from ouzel.api.load import load_stages
from ouzel.bundle import open_bundle
from ouzel.conversion import convert
from ouzel.models.qwen3_tts import FAMILY
from ouzel.models.qwen3_tts.random_phones import write_phones
from ouzel.models.qwen3_tts.track import Track
from ouzel.pipeline import load_deploy
from ouzel.request import SpeechRequest

TEXT = "Good morning to you."
SMALL = {"hidden_size": 192, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
DECODER = {"latent_dim": 32, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2}
DECODER |= {"num_key_value_heads": 2, "head_dim": 16, "decoder_dim": 32}


def random_codec(rng: np.random.Generator) -> Codec:
    books = np.zeros((coding.GROUPS, coding.CODES, coding.DIMS), np.float32)
    parts = tuple(tuple(range(8 * group, 8 * group + 8)) for group in range(coding.GROUPS))
    for group, part in enumerate(parts):
        books[group][:, part] = rng.normal(size=(coding.CODES, 8))
    basis = np.linalg.qr(rng.normal(size=(SIZE, coding.DIMS)))[0].astype(np.float32)
    return Codec(np.zeros(SIZE, np.float32), basis, books, parts)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A work folder as training leaves it, its checkpoint and an fp32 bundle of that."""
    folder = tmp_path_factory.mktemp("voice")
    patch = pytest.MonkeyPatch()
    patch.setattr(model, "TALKER", model.TALKER | SMALL)
    torch.manual_seed(3)
    rng = np.random.default_rng(3)
    codec = random_codec(rng)
    codec.save(folder / "codec.npz")
    size = range(len(ALPHABET))
    triples = tuple((i, j, j) for i in size for j in size if i == j or (i + j) % 3 == 0)
    track, spread = Track(ALPHABET, triples, 4, 2.0), np.ones(coding.DIMS, np.float32)
    net = model.Voice(track, codec, spread)
    net.linear_fc2.bias.data[-1] = 30.0  # the flag, which training brings to 1
    net.talker.norm.weight.data[-1] = 1 / 192**0.5
    net.end.data.normal_()
    state = {"average": net.state_dict(), "track": track.value(), "spread": spread, "means": {}, "step": 1}
    torch.save(state, folder / "talker.pt")
    config = vocoder.CONFIG | DECODER
    decoder = vocoder.Vocoder(config, 2)
    for name, parameter in decoder.named_parameters():
        if name.startswith(("decoder.1.", "decoder.2.")) and "conv2" in name:  # those of the other blocks are never trained
            parameter.data.normal_(0, 0.1)
    state = {"config": config, "units": 2, "average": decoder.state_dict(), "step": 1, "factors": np.full(128, 0.5, np.float32)}
    torch.save(state, folder / "decoder.pt")
    write_phones(folder, 3)
    prosody = json.loads((folder / "phone_track.json").read_text(encoding="utf-8"))["prosody"]
    (folder / "prosody.json").write_text(json.dumps(prosody), encoding="utf-8")
    patch.setattr(sys, "argv", ["export", "--work", str(folder)])
    export.main()
    convert(folder / "checkpoint", folder / "bundle", weights="fp32")
    yield folder, codec.coarser(), decoder.eval()
    patch.undo()


@pytest.mark.parametrize("speaker", ["fern", "moss"])
def test_the_exported_voice_says_what_the_trained_one_says(work, speaker):
    folder, codec, decoder = work
    bundle = open_bundle(folder / "bundle")
    frontend = FAMILY.frontend(bundle)
    talker, sound = load_stages(bundle, load_deploy(bundle.deploy), 1)
    request = frontend.resolve(SpeechRequest(TEXT, voice=speaker, language="english"))
    rows = frontend.rows(request, TEXT)
    sampling = TalkerSampling(repetition_penalty=1.0, stop_token_ids=(frontend.stop_token_id,), allow_id_zero=True).greedy()
    state, codes = talker.prefill(rows, sampling), []
    while (frame := talker.step([state])[0]).codes is not None:
        codes.append(frame.codes)
    codes = np.array(codes)
    net, track, _ = trained(folder, codec)
    ids = frontend._builder._tokenizer.speaking(speaker, 1.0).encode(TEXT)
    assert len(ids) == rows.frames <= len(codes)
    assert max(ids) < track.size
    wanted = net.generate([torch.tensor(ids)], [speaker], limit=10)[0]
    assert len(np.unique(codes)) > 20
    np.testing.assert_array_equal(codes[: len(wanted)], wanted[: len(codes)])
    made = np.asarray(sound.decode(sound.start(), codes)).reshape(-1)
    true = audio(decoder, np.full(128, 0.5, np.float32), codec, codes)
    assert 10 * np.log10(np.square(true).sum() / np.square(made - true).sum()) > 80


def test_codebooks_tell_features_apart(monkeypatch):
    monkeypatch.setattr(coding, "CODES", 32)
    rng = np.random.default_rng(0)
    strength = np.geomspace(10, 0.01, SIZE)
    values = (rng.normal(size=(4000, SIZE)) * strength).astype(np.float32)
    codec = coding.fit(values)
    assert sorted(i for part in codec.parts for i in part) == list(range(coding.DIMS))
    for book, part in zip(codec.books, codec.parts, strict=True):
        assert not np.delete(book, part, axis=1).any()
    components = codec.components(values)
    error = np.square(codec.decode(codec.encode(components)) - components).sum() / np.square(components).sum()
    assert error < 0.5  # 16 times 5 bits on 128 components of every strength


def test_a_steady_tone_has_a_smooth_envelope_wherever_its_harmonics_lie():
    time = np.arange(24000) / 24000
    for hertz in (110.0, 220.0):
        wave = sum(np.sin(2 * np.pi * hertz * k * time) for k in range(1, int(4000 / hertz))) * hertz / 4000
        seen = envelope(wave.astype(np.float32), np.full(80, hertz, np.float32))[10:90]
        low = seen[:, 8:30]  # harmonics of equal strength: flat below 4 kHz
        assert np.ptp(low.mean(0)) < 0.7
        assert seen[:, -4:].max() < low.min() - 2


def test_a_phone_ends_where_it_falls_silent():
    form, unit = ["HH", "AY1", ".", "N", "OW1", "."], 600
    durations = np.array([12, 2, 16, 8, 2, 16, 8, 4]) * unit  # the vowels hold 200 ms of silence each
    spectrum = np.full((durations.sum() // 240 + 1, 64), -9.0, np.float32)
    for start, end in ((12, 22), (38, 48)):
        spectrum[start * unit // 240 : end * unit // 240] = -2.0
    aligned = align(form, durations, np.full(durations.sum() // 300, 120.0, np.float32), spectrum)
    assert aligned.durations[1] == pytest.approx(200, abs=15)
    assert aligned.durations[2] == pytest.approx(400, abs=15)
    assert aligned.durations[:5].sum() == pytest.approx((48 - 12) * 25, abs=20)
    assert aligned.start == (300 - 80) * 24
    assert aligned.frames * FRAME >= (48 - 12) * unit + aligned.start % FRAME
    assert np.isfinite(aligned.tones[[1, 3, 4]]).all()
    assert np.isnan(aligned.tones[[0, 2]]).all()


def test_rounding_a_row_with_one_scale_spares_the_components(work):
    """What enters the predictor's products is of one size, or 8 bits a row would leave nothing of the components."""
    folder, _, _ = work
    network = FAMILY.networks(FAMILY.read_checkpoint(folder / "checkpoint")).predictor
    states = torch.randn(20, network.spec["input_size"], generator=torch.Generator().manual_seed(0))
    states[:, -1] = 1.0
    normed = network.stack.layers[0].input_norm(network.projection(states))
    components, others = normed[:, : coding.DIMS].abs(), normed[:, coding.DIMS :].abs()
    assert components.mean() > 0
    assert others.max() < components.max()


def test_levels_that_lie_close_are_said_as_one():
    rng = np.random.default_rng(0)
    values = rng.normal(0, 0.5, (4000, SIZE)).astype(np.float32)
    values[:, :SPECTRUM] += rng.normal(0, 1, (4000, 1))  # how loud a frame is
    codec = fit(values)
    part = list(codec.parts[0])
    least = 1.2 * float(
        np.sqrt(np.sort(np.square(codec.books[0][:, None, part] - codec.books[0][:, part]).sum(2), 1)[:, 1].mean())
    )
    coarse = codec.coarser(least)
    components = codec.components(values)
    fine, said = codec.encode(components), coarse.encode(components)
    assert np.array_equal(fine[:, 1:], said[:, 1:])
    used = np.unique(said[:, 0])
    assert 20 < len(used) < 0.9 * CODES
    assert np.array_equal(codec.books[0][used], coarse.books[0][used])
    rows = codec.books[0][used][:, part]
    apart = np.square(rows[:, None] - rows).sum(2)
    assert apart[~np.eye(len(used), dtype=bool)].min() >= least**2
    moved = codec.books[0][said[:, 0]] - codec.books[0][fine[:, 0]]
    assert np.square(moved).sum(1).max() < 4 * least**2
