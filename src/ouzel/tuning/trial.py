"""A proposal put to the test: a text spoken with it, talker and decoder at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ouzel.bundle import Bundle
from ouzel.tuning.child import lines


@dataclass(frozen=True, slots=True)
class Trial:
    """rtf: wall / audio time. first_audio_s: from the request. memory_mb: resident, of the whole process."""

    rtf: float
    first_audio_s: float
    frames: int
    memory_mb: float


def try_out(bundle: Bundle, deploy: Path, *, frames: int = 50) -> Trial:
    """Speak up to `frames` frames (80 ms each) with a deploy file, in a process of its own. Raises SynthesisError."""
    (found,) = lines("speech", str(bundle.root), str(deploy), str(frames))
    return Trial(**found)
