"""Another pace at the same pitch, for models that set their own: a phase vocoder, as the samples come."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ouzel.audio.pcm import Samples

SIZE, HOP = 768, 192  # samples of a window and between two of them: what the server uses (contract 8.3)
_OVERLAP = 1.5  # sum of squared Hann windows a quarter of their length apart
_TURN = 2 * np.pi
_EXPECTED = _TURN * HOP / SIZE * np.arange(SIZE // 2 + 1)  # phase that each bin gains from one window to the next


class Tempo:
    """speed: above 0; 2 is twice as fast. n samples become round(n / speed), the same however they are cut into pieces.

    Window k of the output lies at window k * speed of the input; its magnitudes are those of the two around, its phases go on
    as theirs do, and the bins around a peak keep their phases to it (Laroche and Dolson 1999, identity phase locking).
    """

    def __init__(self, speed: float) -> None:
        if not speed > 0:
            raise ValueError(f"speed must be above 0, not {speed}")
        self._speed = speed
        self._window = np.hanning(SIZE + 1)[:-1]
        self._buffer = np.zeros(SIZE // 2)  # the first window has the first sample in its middle
        self._dropped = 0  # windows of the input that the buffer no longer has
        self._made = 0  # windows of the output
        self._phase: NDArray[np.float64] | None = None
        self._tail = np.zeros(SIZE)
        self._lead = SIZE // 2  # outputs before the first sample
        self._taken = self._given = 0

    def feed(self, samples: Samples) -> Samples:
        """float32 (n,) -> what is certain by now, float32 (m,)."""
        self._taken += len(samples)
        return self._passed(self._advance(samples))

    def flush(self) -> Samples:
        """The rest. The stream is over."""
        wanted = round(self._taken / self._speed)
        beyond = int(np.ceil(2 * SIZE * max(1.0, self._speed))) + HOP
        rest = np.concatenate([self._passed(self._advance(np.zeros(beyond))), self._passed(self._tail)])
        missing = wanted - (self._given - len(rest))
        return rest[: max(0, missing)]

    def _passed(self, made: NDArray[np.float64]) -> Samples:
        skipped = min(self._lead, len(made))
        self._lead -= skipped
        self._given += len(made) - skipped
        return made[skipped:].astype(np.float32)

    def _advance(self, samples: NDArray[np.floating]) -> NDArray[np.float64]:
        """All windows of the output whose two of the input are there; (HOP * windows,)."""
        self._buffer = np.concatenate([self._buffer, samples])
        last = (len(self._buffer) - SIZE) // HOP  # window of the buffer
        count = int(np.floor((self._dropped + last - 1) / self._speed)) - self._made + 1 if last >= 1 else 0
        if count < 1:
            return np.zeros(0)
        places = np.arange(self._made, self._made + count) * self._speed - self._dropped
        at = np.minimum(np.floor(places).astype(int), last - 1)
        near = (places - at)[:, None]
        one, other = self._spectra(at), self._spectra(at + 1)
        gain = np.angle(other) - np.angle(one) - _EXPECTED
        gain += _EXPECTED - _TURN * np.round(gain / _TURN)
        loud, angles = (1 - near) * np.abs(one) + near * np.abs(other), np.angle(one)
        phases = np.empty_like(angles)
        for k in range(count):
            phases[k] = angles[k] if self._phase is None else _locked(self._phase, angles[k], loud[k])
            self._phase = (phases[k] + gain[k]) % _TURN
        windows = np.fft.irfft(loud * np.exp(1j * phases), SIZE) * self._window / _OVERLAP
        out = np.concatenate([self._tail, np.zeros(HOP * (count - 1))])
        for k, window in enumerate(windows):
            out[k * HOP : k * HOP + SIZE] += window
        self._made += count
        self._tail = np.concatenate([out[HOP * count :], np.zeros(HOP)])
        gone = max(0, min(int(self._made * self._speed) - self._dropped, last))
        self._buffer, self._dropped = self._buffer[gone * HOP :], self._dropped + gone
        return out[: HOP * count]

    def _spectra(self, windows: NDArray[np.int64]) -> NDArray[np.complex128]:
        found: NDArray[np.complex128] = np.fft.rfft(
            np.lib.stride_tricks.sliding_window_view(self._buffer, SIZE)[windows * HOP] * self._window
        )
        return found + 0.0  # of a minus zero the angle is half a turn


def _locked(phase: NDArray[np.float64], angles: NDArray[np.float64], loud: NDArray[np.float64]) -> NDArray[np.float64]:
    """(bins,) phases: that of a bin's nearest peak, and the bin's own distance from it in the input."""
    inner = (loud[1:-1] >= loud[:-2]) & (loud[1:-1] > loud[2:])
    peaks = np.flatnonzero(np.concatenate([[False], inner, [False]]))
    if not len(peaks):
        return phase
    nearest = peaks[np.searchsorted((peaks[1:] + peaks[:-1]) / 2, np.arange(len(phase)))]
    found: NDArray[np.float64] = phase[nearest] + angles - angles[nearest]
    return found
