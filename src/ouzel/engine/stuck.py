"""Termination that users can trust: notice speech that goes round in circles or has become room tone.

Both detectors judge frame by frame, so where they hit depends on the frames alone, never on chunk sizes or speed.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import ConfigError


@dataclass(frozen=True, slots=True)
class StuckPolicy:
    """When a segment counts as stuck.

    enabled: False for random-weight models and greedy experiments, which loop by nature.
    repeat_seconds: a codebook-0 pattern repeated for this long. Users report takes with one code 59 times in a row (4.7 s);
    speech itself,
        a long pause included, does not repeat exactly for 4 s.
    max_period: longest pattern in frames; 8 (0.64 s) covers a looped syllable, longer would begin to match refrains.
    silence_seconds: near-silence for this long. A written pause (dots, paragraph) stays below 3 s; room tone after a missed
    end code
        goes on to the limit, 164 s in the reports.
    silence_dbfs: a frame whose RMS is below this is near-silent: 60 times below ordinary speech at -20 dBFS.
    silent_result_seconds: a whole utterance of at least this length without one audible frame is an error, not a result.
    """

    enabled: bool = True
    repeat_seconds: float = 4.0
    max_period: int = 8
    silence_seconds: float = 6.0
    silence_dbfs: float = -55.0
    silent_result_seconds: float = 1.0

    def __post_init__(self) -> None:
        if self.repeat_seconds <= 0 or self.silence_seconds <= 0 or self.silent_result_seconds < 0:
            raise ConfigError("stuck: repeat_seconds and silence_seconds must be positive, silent_result_seconds not negative.")
        if self.max_period < 1:
            raise ConfigError("stuck: max_period must be at least 1 frame.")

    @property
    def silence_rms(self) -> float:
        return float(10.0 ** (self.silence_dbfs / 20.0))


class RepeatDetector:
    """Codebook-0 ids in, True from the frame on that completes a repetition of period 1..max_period lasting `frames` frames.

    Keeps, for each period p, for how many frames in a row code[t] == code[t - p] held: O(max_period) work and memory a frame.
    """

    def __init__(self, frames: int, max_period: int = 8) -> None:
        self.frames = max(frames, 2 * max_period)  # a pattern must be seen twice at the very least
        self._recent: deque[int] = deque(maxlen=max_period)
        self._held = [0] * max_period
        self.hit = False

    def push(self, code0: int) -> bool:
        for period in range(1, len(self._recent) + 1):
            same = self._recent[-period] == code0
            self._held[period - 1] = self._held[period - 1] + 1 if same else 0
            # held + period frames are covered by the pattern: the first occurrence and its repetitions
            if self._held[period - 1] + period >= self.frames:
                self.hit = True
        self._recent.append(code0)
        return self.hit


class SilenceDetector:
    """Decoded samples in; knows the loudest frame so far and finds where `frames` near-silent frames in a row end."""

    def __init__(self, frames: int, samples_per_frame: int, rms: float) -> None:
        self.frames = max(frames, 1)
        self._samples_per_frame = samples_per_frame
        self._threshold = rms
        self._quiet = 0
        self.loudest = 0.0

    def push(self, samples: NDArray[np.float32]) -> int | None:
        """samples: float32 (n * samples_per_frame,). How many of its frames to keep if the silence is now complete, else None."""
        frames = samples.reshape(-1, self._samples_per_frame).astype(np.float64)
        for i, level in enumerate(np.sqrt(np.mean(frames * frames, axis=1))):
            self.loudest = max(self.loudest, float(level))
            self._quiet = self._quiet + 1 if level < self._threshold else 0
            if self._quiet >= self.frames:
                return i + 1
        return None
