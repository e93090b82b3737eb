"""The tables of a bundle: the narrower form of the text rows, number types, and what is refused."""

import json

import numpy as np
import pytest

from ouzel.bundle import BundleWriter, open_bundle
from ouzel.errors import BundleError
from ouzel.models.qwen3_tts.config import ModelConfig
from ouzel.models.qwen3_tts.tables import CODEC, INNER, OUTER, PARTS, RESIDUAL, SUMS, TEXT, read_tables, write_tables


class FewRows:
    """What `write_tables` asks of a checkpoint, with text rows of any width."""

    def __init__(self, config, seed=0):
        self.config = config
        self._rng = np.random.default_rng(seed)
        t = config.talker
        self._text = self._draw(t.text_vocab_size, t.text_hidden_size)
        self._codec = self._draw(t.vocab_size, t.hidden_size)
        self._residual = self._draw(t.num_code_groups - 1, t.predictor.vocab_size, t.hidden_size)
        narrow, wide = t.text_hidden_size, t.hidden_size
        self._projection = self._draw(narrow, narrow), self._draw(narrow), self._draw(wide, narrow), self._draw(wide)

    def _draw(self, *shape):
        return self._rng.standard_normal(shape).astype(np.float32)

    def codec_embedding(self):
        return self._codec

    def residual_embedding(self):
        return self._residual

    def text_rows(self, start, stop):
        return self._text[start:stop]

    def text_projection(self):
        return self._projection

    def projected(self, ids):
        first, first_bias, second, second_bias = (part.astype(np.float64) for part in self._projection)
        hidden = self._text[ids] @ first.T + first_bias
        return hidden / (1 + np.exp(-hidden)) @ second.T + second_bias


@pytest.fixture
def few(nano_checkpoint):
    def make(text_width):
        value = json.loads((nano_checkpoint("custom_voice") / "config.json").read_text())
        value["talker_config"]["text_hidden_size"] = text_width
        return FewRows(ModelConfig.parse(value))

    return make


def bundle_of(checkpoint, out, dtype, summands=None):
    with BundleWriter(out) as writer:
        writer.describe(family="qwen3_tts", tokenizer="hf_bpe", task="CustomVoice")
        write_tables(checkpoint, writer, dtype, lambda done: None, summands)
    return open_bundle(out)


@pytest.mark.parametrize(("dtype", "limit"), [(np.float32, 1e-4), (np.float16, 0.03)])
@pytest.mark.parametrize(("text_width", "stored"), [(16, 16), (64, 64), (96, 64)])
def test_the_narrower_form_is_stored(few, tmp_path, dtype, limit, text_width, stored):
    checkpoint = few(text_width)
    bundle = bundle_of(checkpoint, tmp_path / "out", dtype)
    assert bundle.array(TEXT).shape == (336, stored)
    assert bundle.array(TEXT).dtype == dtype
    assert (INNER in bundle.manifest.files, OUTER in bundle.manifest.files) == (stored < 64, stored < 64)
    tables = read_tables(bundle, checkpoint.config)
    ids = [5, 335, 5, 0]
    rows = tables.text_rows(ids)
    assert (rows.shape, rows.dtype) == ((4, 64), np.float32)
    assert np.abs(rows - checkpoint.projected(ids)).max() < limit * np.abs(checkpoint.projected(ids)).max()
    assert tables.text_rows([]).shape == (0, 64)
    with pytest.raises(BundleError, match=r"the id 336, but tables/text\.npy has 336 rows"):
        tables.text_rows([336])


def test_codec_tables_are_float16_where_they_are_small(few, tmp_path, monkeypatch):
    checkpoint = few(64)
    small = bundle_of(checkpoint, tmp_path / "small", np.float16)
    assert (small.array(CODEC).dtype, small.array(RESIDUAL).dtype) == (np.float16, np.float16)
    codes = np.arange(32).reshape(2, 16)
    exact = read_tables(bundle_of(checkpoint, tmp_path / "exact", np.float32), checkpoint.config)
    near = read_tables(small, checkpoint.config)
    assert exact.frame_rows(codes).dtype == near.frame_rows(codes).dtype == near.codec_rows([1]).dtype == np.float32
    assert 0 < np.abs(exact.frame_rows(codes) - near.frame_rows(codes)).max() < 0.02
    monkeypatch.setattr("ouzel.models.qwen3_tts.tables.MAPPED", 3072 * 64 * 4)
    large = bundle_of(checkpoint, tmp_path / "large", np.float16)
    assert (large.array(CODEC).dtype, large.array(RESIDUAL).dtype) == (np.float16, np.float32)


def test_a_projection_of_another_model_is_refused(few, tmp_path):
    checkpoint = few(16)
    bundle = bundle_of(checkpoint, tmp_path / "out", np.float16)
    with pytest.raises(BundleError, match=r"text\.npy has shape \(336, 16\), config\.json says \(336, 24\)"):
        read_tables(bundle, few(24).config)
    np.save(bundle.root / OUTER, np.zeros((64, 16), np.float32))
    with pytest.raises(BundleError, match=r"text_outer\.npy has shape \(64, 16\), config\.json says \(64, 17\)"):
        read_tables(bundle, checkpoint.config)


def test_rows_that_are_sums_are_stored_as_their_parts(few, tmp_path):
    checkpoint = few(24)
    rng = np.random.default_rng(1)
    summands = np.stack([rng.integers(0, 9, 336), 9 + rng.integers(0, 5, 336)], 1)
    checkpoint._text = rng.standard_normal((14, 24)).astype(np.float32)[summands].sum(1)
    bundle = bundle_of(checkpoint, tmp_path / "out", np.float16, summands)
    assert TEXT not in bundle.manifest.files
    assert bundle.array(PARTS).shape == (14, 24)
    tables, ids = read_tables(bundle, checkpoint.config), [5, 335, 5, 0]
    rows = tables.text_rows(ids)
    assert (rows.shape, rows.dtype) == ((4, 64), np.float32)
    assert np.abs(rows - checkpoint.projected(ids)).max() < 1e-4 * np.abs(checkpoint.projected(ids)).max()
    assert tables.text_rows([]).shape == (0, 64)
    with pytest.raises(BundleError, match=r"the id 336, but tables/text_sums\.npy has 336 rows"):
        tables.text_rows([336])
    with pytest.raises(BundleError, match=r"text_parts\.npy has shape \(14, 24\), config\.json says \('any', 16\)"):
        read_tables(bundle, few(16).config)
    bad = bundle.indices(SUMS).copy()
    bad[7, 1] = 14
    np.save(bundle.root / SUMS, bad)
    with pytest.raises(BundleError, match=r"text_sums\.npy is damaged \(indices outside the 14 parts\)"):
        read_tables(bundle, checkpoint.config)
    checkpoint._text[9, 3] += 0.01
    assert TEXT in bundle_of(checkpoint, tmp_path / "plain", np.float16, summands).manifest.files
