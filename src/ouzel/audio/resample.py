"""Other sample rates: of a whole recording, or of a stream that goes down to a whole fraction of its rate.

The stream comes in pieces, and its samples are the same however it is cut.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ouzel.audio.pcm import Samples

HALF_WIDTH = 10  # zero crossings of the filter on each side, and its window: what the server uses (contract 8.3)
KAISER_BETA = 5.0
# For recordings, which a model hears: flat up to 0.91 of the band, -90 dB from its end on.
_FINE_WIDTH, _FINE_BETA, _BAND = 64, 9.0, 0.955
_GRID = 512  # points of the filter between two inputs; it is straight between those
_PHASES = 2048


class Downsampler:
    """Every `factor`-th sample of the low-passed stream; n samples become ceil(n / factor). float32 in, float32 out."""

    def __init__(self, factor: int) -> None:
        if factor < 1:
            raise ValueError(f"factor must be at least 1, not {factor}")
        self._factor = factor
        half = HALF_WIDTH * factor
        offsets = np.arange(-half, half + 1)
        taps = np.sinc(offsets / factor) * np.kaiser(len(offsets), KAISER_BETA)
        self._taps = taps / taps.sum()
        self._half = half
        self._held = np.zeros(half, np.float64)  # before the stream there is silence
        self._due = 0  # where in `_held` the window of the next output begins

    def feed(self, samples: Samples) -> Samples:
        """The outputs whose whole window is known by now."""
        self._held = np.concatenate([self._held, samples])
        width = len(self._taps)
        count = max(0, (len(self._held) - width - self._due) // self._factor + 1)
        if count == 0:
            return np.zeros(0, np.float32)
        windows = np.lib.stride_tricks.sliding_window_view(self._held[self._due :], width)[:: self._factor][:count]
        out: Samples = (windows @ self._taps).astype(np.float32)
        self._due += count * self._factor
        drop = min(self._due, len(self._held))
        self._held = self._held[drop:]
        self._due -= drop
        return out

    def flush(self) -> Samples:
        """The outputs that were waiting for the end. The stream is over."""
        return self.feed(np.zeros(self._half, np.float32))


def resample(samples: Samples, from_rate: int, to_rate: int) -> Samples:
    """All of a recording at another rate (Hz, both above 0): float32 (n,) becomes float32 (ceil(n * to_rate / from_rate),).

    Windowed-sinc interpolation (Smith and Gossett 1984); output k is what the band-limited input is at k / to_rate seconds.
    """
    if min(from_rate, to_rate) < 1:
        raise ValueError(f"sample rates must be above 0, not {from_rate} and {to_rate}")
    if from_rate == to_rate or not len(samples):
        return samples.astype(np.float32)
    common = math.gcd(from_rate, to_rate)
    phases, step = to_rate // common, from_rate // common  # output k lies k * step / phases inputs behind the start
    band = _BAND * min(1.0, phases / step)
    half = math.ceil(_FINE_WIDTH / band)
    count = -(-len(samples) * phases // step)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(samples.astype(np.float64), half), 2 * half)
    grid = np.linspace(-half, half, 2 * half * _GRID + 1)
    kernel = np.sinc(band * grid) * np.kaiser(len(grid), _FINE_BETA)

    def taps(rest: NDArray[np.int64]) -> NDArray[np.float64]:
        away = np.arange(1 - half, half + 1) - rest[:, None] / phases
        found: NDArray[np.float64] = np.interp(away, grid, kernel)
        found /= found.sum(1, keepdims=True)
        return found

    out = np.empty(count, np.float32)
    if phases > _PHASES:  # an odd rate: hardly an output has its phase from another
        for start in range(0, count, _PHASES):
            bases, rests = np.divmod(np.arange(start, min(start + _PHASES, count)) * step, phases)
            out[start : start + _PHASES] = (windows[bases + 1] * taps(rests)).sum(1)
        return out
    for phase in range(min(phases, count)):
        base, rest = divmod(phase * step, phases)
        mine = out[phase::phases]
        mine[:] = windows[base + 1 :: step][: len(mine)] @ taps(np.array([rest]))[0]
    return out
