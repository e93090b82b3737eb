"""How fast this machine makes frames: measured by the engine, used by the `auto` schedule."""

from __future__ import annotations

import threading
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SpeedModel:
    """Wall time of both stages, in ms.

    frame_ms: talker (with code predictor) a frame. decode_call_ms: what a decode call costs whatever its length.
    decode_frame_ms: decode cost of each frame in the call.
    """

    frame_ms: float
    decode_call_ms: float = 0.0
    decode_frame_ms: float = 0.0

    def __post_init__(self) -> None:
        if not (self.frame_ms > 0 and self.decode_call_ms >= 0 and self.decode_frame_ms >= 0):
            raise ValueError(f"a speed needs frame_ms > 0 and decode costs >= 0, got {self}")

    @property
    def per_frame_ms(self) -> float:
        """Talker and decoder together for one more frame in a chunk."""
        return self.frame_ms + self.decode_frame_ms

    def decode_ms(self, frames: int) -> float:
        """One decode call of `frames` frames."""
        return self.decode_call_ms + self.decode_frame_ms * frames

    def chunk_ms(self, frames: int) -> float:
        """Making and decoding a chunk of `frames` frames, one after the other."""
        return self.per_frame_ms * frames + self.decode_call_ms


class SpeedEstimator:
    """Running estimate fed by the engine from any thread.

    Talker: exponential average a frame. Decoder: least squares of call time on call length, older calls fading by `decay` each.
    While all calls had one length the two costs cannot be told apart; the call time is then shared half and half, which
    overrates small chunks less than "all per frame" and large ones less than "all per call" would.
    """

    def __init__(self, *, talker_weight: float = 0.1, decay: float = 0.9) -> None:
        self._lock = threading.Lock()
        self._keep = 1.0 - talker_weight
        self._decay = decay
        self._frame_ms: float | None = None
        self._sums = (0.0, 0.0, 0.0, 0.0, 0.0)  # weights, n, n*n, t, n*t

    def add_talker(self, frames: int, ms: float) -> None:
        """`frames` (>= 1) talker steps took `ms` of wall time."""
        if frames < 1 or ms < 0:
            raise ValueError(f"cannot learn from {frames} frames in {ms} ms")
        with self._lock:
            sample = ms / frames
            keep = self._keep**frames
            self._frame_ms = sample if self._frame_ms is None else keep * self._frame_ms + (1.0 - keep) * sample

    def add_decode(self, frames: int, ms: float) -> None:
        """One decode call of `frames` (>= 1) frames took `ms` of wall time."""
        if frames < 1 or ms < 0:
            raise ValueError(f"cannot learn from a decode of {frames} frames in {ms} ms")
        with self._lock:
            fresh = (1.0, float(frames), float(frames * frames), ms, frames * ms)
            w, n, nn, t, nt = (old * self._decay + new for old, new in zip(self._sums, fresh, strict=True))
            self._sums = (w, n, nn, t, nt)

    def model(self) -> SpeedModel | None:
        """The estimate, or None until both stages have been seen."""
        with self._lock:
            frame_ms, (w, n, nn, t, nt) = self._frame_ms, self._sums
        if frame_ms is None or w == 0.0:
            return None
        spread = w * nn - n * n
        if spread <= 1e-6 * w * nn:
            call, per_frame = t / w / 2, t / n / 2
        else:
            per_frame = (w * nt - n * t) / spread
            call = (t - per_frame * n) / w
            if call < 0:
                call, per_frame = 0.0, nt / nn
            elif per_frame < 0:
                call, per_frame = t / w, 0.0
        return SpeedModel(max(frame_ms, 1e-3), call, per_frame)
