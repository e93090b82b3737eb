"""The down-sampler: cut-independent, and the filter that it says it is."""

import numpy as np
import pytest
from scipy import signal

from ouzel.audio.resample import Downsampler


def resampled(samples, factor, sizes):
    down, out, at = Downsampler(factor), [], 0
    for size in sizes:
        out.append(down.feed(samples[at : at + size]))
        at += size
    out.append(down.feed(samples[at:]))
    out.append(down.flush())
    return np.concatenate(out)


@pytest.mark.parametrize("length", [1, 2, 3, 59, 60, 61, 1920, 5000])
@pytest.mark.parametrize("factor", [1, 2, 3])
def test_equals_the_polyphase_filter_of_scipy(length: int, factor: int):
    samples = np.random.default_rng(length).standard_normal(length).astype(np.float32)
    expected = signal.resample_poly(samples.astype(np.float64), 1, factor, window=("kaiser", 5.0))
    found = resampled(samples, factor, [])
    assert len(found) == -(-length // factor)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("sizes", [[1] * 200, [7, 0, 1919, 3], [1920, 48000]])
def test_cutting_changes_no_sample(sizes: list[int]):
    samples = np.random.default_rng(0).standard_normal(60_000).astype(np.float32)
    assert np.array_equal(resampled(samples, 3, sizes), resampled(samples, 3, []))
