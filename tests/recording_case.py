"""Recordings to imitate: made here, packed as clients pack them."""

from __future__ import annotations

import base64
import io

import av
import numpy as np
import soundfile


def voice_like(seconds: float = 1.5, rate: int = 24_000) -> np.ndarray:
    """float64 (n,): a buzz with a melody in it."""
    t = np.arange(round(seconds * rate)) / rate
    phase = 2 * np.pi * np.cumsum(120 + 30 * np.sin(2 * np.pi * 1.5 * t)) / rate
    return 0.2 * sum(np.sin(k * phase) / k for k in range(1, 9)) * (0.6 + 0.4 * np.sin(2 * np.pi * 3 * t))


def wav(seconds: float = 1.5, rate: int = 24_000, channels: int = 1, subtype: str = "PCM_16") -> bytes:
    """Channels of alternating sign and falling level, so that their mean is neither of them."""
    one = voice_like(seconds, rate)
    return packed(np.stack([one * (0.9 if c == 0 else 0.3) for c in range(channels)], axis=1), rate, "WAV", subtype)


def packed(samples: np.ndarray, rate: int, kind: str, subtype: str | None = None) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=kind, subtype=subtype)
    return file.getvalue()


def muxed(samples: np.ndarray, rate: int, container: str, codec: str) -> bytes:
    """By FFmpeg, for what soundfile does not write."""
    file = io.BytesIO()
    with av.open(file, "w", format=container) as out:
        stream = out.add_stream(codec, rate=rate, layout="stereo")
        shape = av.AudioResampler(format=stream.codec_context.format.name, layout="stereo", rate=rate)
        frame = av.AudioFrame.from_ndarray(np.stack([samples] * 2).astype(np.float32), format="fltp", layout="stereo")
        frame.sample_rate = rate
        for piece in (*shape.resample(frame), *shape.resample(None)):
            out.mux(stream.encode(piece))
        out.mux(stream.encode(None))
    return file.getvalue()


def uri(data: bytes, kind: str = "audio/wav") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
