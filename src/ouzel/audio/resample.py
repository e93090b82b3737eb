"""Down to a whole fraction of the sample rate, piece by piece, with the same samples however the stream is cut."""

from __future__ import annotations

import numpy as np

from ouzel.audio.pcm import Samples

HALF_WIDTH = 10  # zero crossings of the filter on each side, and its window: what the server uses (contract 8.3)
KAISER_BETA = 5.0


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
