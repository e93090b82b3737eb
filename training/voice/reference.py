"""What the teacher makes of the held-out sentences: the mark that the voice is measured against. Made once, kept on disk."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .teacher import Teacher, prepare


class Reference:
    """Teacher speech by spoken form and speaker. work: folder of everything that is made; the graphs are written if missing."""

    def __init__(self, work: Path, threads: int = 1) -> None:
        self._work, self._threads = work, threads
        self._teacher: Teacher | None = None

    def path(self, form: Sequence[str], speaker: str) -> Path:
        key = hashlib.sha256("\0".join([speaker, *form]).encode()).hexdigest()[:20]
        return self._work / "reference" / f"{speaker}-{key}.npy"

    def audio(self, form: Sequence[str], speaker: str) -> np.ndarray:
        """float32 (samples,) at 24 kHz of a spoken form at the voice's own rate."""
        path = self.path(form, speaker)
        if not path.exists():
            if self._teacher is None:
                prepare(self._work / "teacher")
                self._teacher = Teacher(self._work / "teacher", audio=True, threads=self._threads)
            said = self._teacher.say(form, speaker).audio
            if said is None:
                raise RuntimeError("The teacher was loaded without its waveform generator.")
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path.with_suffix(".tmp"), "wb") as file:
                np.save(file, (said.clip(-1, 1) * 32767).round().astype(np.int16))
            os.replace(path.with_suffix(".tmp"), path)
        return np.load(path).astype(np.float32) / 32767
