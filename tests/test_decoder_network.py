"""The torch codec decoder against the official package's output, and its state against chunking."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch

from decoder_case import REQUIRED_DB, chunks, golden_checkpoint, read_golden, snr
from ouzel.models.qwen3_tts.config import CodecConfig, CodecDecoderConfig
from ouzel.models.qwen3_tts.network.decoder import CodecDecoder, build_decoder
from ouzel.models.qwen3_tts.network.decoder_state import state_layout
from ouzel.models.qwen3_tts.tensors import DECODER, STACKED, decoder_shapes

torch.set_num_threads(1)

OTHER = CodecDecoderConfig(
    codebook_dim=12,
    codebook_size=20,
    decoder_dim=24,
    head_dim=6,
    hidden_size=10,
    intermediate_size=14,
    latent_dim=16,
    num_attention_heads=4,
    num_hidden_layers=3,
    num_key_value_heads=2,
    num_quantizers=5,
    num_semantic_quantizers=2,
    rms_norm_eps=1e-5,
    rope_theta=500.0,
    sliding_window=9,
    upsample_rates=(3, 2),
    upsampling_ratios=(2, 3, 1),
    attention_bias=False,
    hidden_act="silu",
)


def run(network, codes, pieces):
    state, samples = [tensor.to(network.codebooks) for tensor in network.zero_state()], []
    with torch.no_grad():
        for piece in pieces:
            out, *state = network(torch.from_numpy(codes[piece]), *state)
            samples.append(out.numpy())
    return np.concatenate(samples)


def random_tensors(config, seed=0):
    """Tensors as Checkpoint.decoder() gives them."""
    rng, tensors = np.random.default_rng(seed), {}
    for name, shape in decoder_shapes(config).items():
        scale = 0.1 if len(shape) == 1 else np.prod(shape[1:]) ** -0.5
        if name == f"decoder.decoder.{len(config.upsample_rates) + 2}.conv.weight":
            scale *= 0.02  # without which the samples clip, and clipping hides differences
        values = rng.normal(0, scale, shape) + (1.0 if name.endswith(("usage", "norm.weight")) else 0.0)
        tensors[name.removeprefix(DECODER)] = torch.tensor(values, dtype=torch.float32)
    for fused, parts in STACKED.items():
        for name in [n for n in tensors if f".{parts[0]}." in n]:
            whole = torch.cat([tensors.pop(name.replace(parts[0], part)) for part in parts])
            tensors[name.replace(parts[0], fused)] = whole
    return tensors


@pytest.fixture(scope="module")
def golden():
    return read_golden()


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return build_decoder(golden_checkpoint(tmp_path_factory.mktemp("decoder")), max_new=300)


@pytest.fixture(scope="module")
def whole(network, golden):
    """Our decode of all frames in one call: every sample, where the golden file holds one in seven."""
    return run(network, golden.codes, [slice(None)])


def test_one_call_equals_the_official_decode(whole, golden):
    assert golden.worst_db(whole) >= REQUIRED_DB


@pytest.mark.parametrize("size", [1, 7, None])
def test_any_chunking_equals_the_official_decode(network, golden, whole, size):
    samples = run(network, golden.codes, chunks(len(golden.codes), size))
    assert len(samples) == len(golden.codes) * 1920
    assert golden.worst_db(samples) >= REQUIRED_DB
    assert snr(samples, whole) >= REQUIRED_DB


def test_the_golden_vectors_exercise_the_whole_range(golden, whole):
    assert golden.codes.shape == (300, 16), "longer than the attention window of 72"
    assert 0.05 < whole.std() < 0.5
    assert np.abs(whole).max() < 1.0, "clipping would hide errors"


@pytest.mark.parametrize("size", [1, 2, 5, 30])
def test_other_dimensions_work_from_the_config_alone(size):
    config = CodecConfig(OTHER, output_sample_rate=16_000, decode_upsample_rate=36)
    network = CodecDecoder(config, random_tensors(OTHER), max_new=60).double()
    codes = np.random.default_rng(1).integers(0, 20, (60, 5))
    samples = run(network, codes, chunks(60, size))
    assert samples.shape == (60 * 36,)
    whole = run(network, codes, [slice(None)])
    assert 0.01 < whole.std() < 0.5
    assert snr(samples, whole) >= 140, "in float64 only the rotation table, rounded to float32, differs"


def test_attention_sees_exactly_the_window():
    config = CodecConfig(dataclasses.replace(OTHER, num_hidden_layers=1), 16_000, 36)
    network = CodecDecoder(config, random_tensors(config.decoder), max_new=60)
    codes = np.random.default_rng(2).integers(0, 20, (60, 5))
    before = network_rows(network, codes)
    codes[20] = (codes[20] + 1) % 20
    changed = np.flatnonzero(np.abs(network_rows(network, codes) - before).max(1) > 1e-9)
    # frame 20 reaches rows 20..22 through the kernel of 3, and from there 8 rows further through the window of 9
    assert (changed.min(), changed.max()) == (20, 30)


def network_rows(network, codes):
    """The transformer's output rows, float64."""
    rows = torch.nn.functional.embedding(torch.from_numpy(codes) + network.offsets, network.codebooks).sum(1)[None]
    state = network.zero_state()
    with torch.no_grad():
        rows, _ = network.pre(rows, state[0])
        rows, _, _ = network.transformer(rows, state[1], state[2:4])
    return rows[0].double().numpy()


def test_the_spec_is_plain_json_and_names_the_state(network):
    spec = json.loads(json.dumps(network.spec))
    assert spec == network.spec
    sizes = {name: spec[name] for name in ("groups", "codebook_size", "samples_per_frame", "sample_rate", "sliding_window")}
    assert list(sizes.values()) == [16, 2048, 1920, 24_000, 72]
    assert [tuple(entry["shape"]) for entry in spec["state"]] == [tuple(t.shape) for t in network.zero_state()]


def test_the_state_of_the_published_codec_is_small():
    published = dataclasses.replace(OTHER, codebook_dim=512, codebook_size=2048, decoder_dim=1536, head_dim=64, latent_dim=1024)
    published = dataclasses.replace(published, num_attention_heads=16, num_key_value_heads=16, num_hidden_layers=8)
    published = dataclasses.replace(published, sliding_window=72, upsample_rates=(8, 5, 4, 3), upsampling_ratios=(2, 2))
    layout = state_layout(published)
    assert sum(int(np.prod(layout[name])) for name in layout if name.startswith(("keys", "values"))) == 8 * 2 * 71 * 1024
    assert sum(int(np.prod(shape)) for shape in layout.values()) * 4 < 6 * 2**20
