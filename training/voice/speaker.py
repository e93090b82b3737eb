"""Who speaks: the d-vector of the generalised end-to-end encoder, with the weights that the package Resemblyzer carries.

The package's own code needs librosa and webrtcvad; its network is three LSTM layers and a linear one, written here anew. One
thing differs: pauses are found by energy, not by webrtcvad, which for studio-clean speech comes to the same.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

RATE = 16000
MELS = 40
_FFT, _HOP = 400, 160  # 25 ms and 10 ms
_PARTIAL = 160  # frames of one look: 1.6 s
_STEP = 77  # frames between looks: 1.3 a second
_COVERAGE = 0.75  # of the last look that must be speech
_LEVEL = -30.0  # dBFS that quieter speech is raised to
_BLOCK, _SMOOTH, _LONGEST = 480, 8, 6  # samples of 30 ms; blocks of the moving average; of the longest pause that stays
_QUIET = 35.0  # dB below the loudest block


@cache
def mel_filters() -> np.ndarray:
    """(40, 201) triangles on Slaney's mel scale (linear to 1 kHz, then logarithmic), each of unit area, 0 to 8 kHz."""

    def to_mel(hz: float) -> float:
        return hz * 3 / 200 if hz < 1000 else 15 + np.log(hz / 1000) * 27 / np.log(6.4)

    mels = np.linspace(0.0, to_mel(RATE / 2), MELS + 2)
    edges = np.where(mels < 15, mels * 200 / 3, 1000 * np.exp((mels - 15) * np.log(6.4) / 27))
    bins = np.linspace(0, RATE / 2, _FFT // 2 + 1)
    rise = (bins - edges[:-2, None]) / np.diff(edges)[:-1, None]
    fall = (edges[2:, None] - bins) / np.diff(edges)[1:, None]
    triangles: np.ndarray = np.maximum(0, np.minimum(rise, fall)) * (2 / (edges[2:] - edges[:-2]))[:, None]
    return triangles


def mel_power(audio: np.ndarray) -> np.ndarray:
    """(frames, 40) float32 mel power (not its logarithm) of (n,) samples: Hann windows of 25 ms centred every 10 ms."""
    padded = np.pad(audio, _FFT // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, _FFT)[::_HOP]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_FFT) / _FFT)
    return np.asarray(np.abs(np.fft.rfft(frames * window)) ** 2 @ mel_filters().T, np.float32)


def without_pauses(audio: np.ndarray) -> np.ndarray:
    """Drop silence longer than 180 ms. Silence alone comes back whole."""
    blocks = audio[: len(audio) // _BLOCK * _BLOCK].reshape(-1, _BLOCK)
    if not len(blocks):
        return audio
    level = 10 * np.log10((blocks**2).mean(axis=1) + 1e-12)
    speech = (level > level.max() - _QUIET).astype(float)
    smooth = np.convolve(speech, np.ones(_SMOOTH) / _SMOOTH)[_SMOOTH // 2 : _SMOOTH // 2 + len(speech)]
    kept = np.convolve(smooth.round(), np.ones(_LONGEST + 1), "same") > 0
    return blocks[kept].reshape(-1) if kept.any() else audio


@cache
def _network() -> Any:
    import torch

    from .judge import package_folder

    weights = torch.load(package_folder("resemblyzer") / "pretrained.pt", map_location="cpu", weights_only=True)["model_state"]
    lstm, linear = torch.nn.LSTM(MELS, 256, 3, batch_first=True), torch.nn.Linear(256, 256)
    for name, module in (("lstm", lstm), ("linear", linear)):
        module.load_state_dict(
            {key.removeprefix(f"{name}."): value for key, value in weights.items() if key.startswith(f"{name}.")}
        )
        module.eval()
    return lstm, linear


def encode(audio: np.ndarray) -> np.ndarray:
    """(256,) float32 unit vector of speech at 16 kHz: the mean over looks of 1.6 s."""
    import torch

    level = 10 * np.log10(float((audio.astype(np.float64) ** 2).mean()) + 1e-12) if len(audio) else _LEVEL
    audio = without_pauses(audio * 10 ** (max(0.0, _LEVEL - level) / 20))
    total = -(-(len(audio) + 1) // _HOP)
    starts = list(range(0, max(1, total - _PARTIAL + _STEP + 1), _STEP))
    if len(starts) > 1 and len(audio) - starts[-1] * _HOP < _COVERAGE * _PARTIAL * _HOP:
        del starts[-1]
    mels = mel_power(np.pad(audio, (0, max(0, (starts[-1] + _PARTIAL) * _HOP - len(audio)))))
    lstm, linear = _network()
    with torch.inference_mode():
        _, (hidden, _) = lstm(torch.from_numpy(np.stack([mels[start : start + _PARTIAL] for start in starts])))
        looks = torch.relu(linear(hidden[-1]))
        mean = (looks / looks.norm(dim=1, keepdim=True)).mean(dim=0)
        vector: np.ndarray = (mean / mean.norm()).numpy()
    return vector
