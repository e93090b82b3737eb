"""One request for speech, as a value: what the CLI, the Python API and a server all build."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """Fields follow vLLM-Omni's request (contract 8.2); None means "the bundle's or deploy file's default".

    speaker_embedding: float32 (hidden,), Base x-vector mode. ref_codes: int64 (R, groups) with ref_text, Base ICL mode.
    non_streaming_mode is about the prompt layout (contract 4.5), not about audio streaming.
    speed: 0.25 to 4, 2 is twice as fast; honoured by models that plan their pace, refused by the others unless it is 1.
    """

    text: str
    voice: str | None = None
    language: str | None = None
    instructions: str | None = None
    task_type: str | None = None
    speaker_embedding: NDArray[np.float32] | None = None
    ref_codes: NDArray[np.int64] | None = None
    ref_text: str | None = None
    non_streaming_mode: bool | None = None
    seed: int | None = None
    greedy: bool = False
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    max_new_tokens: int | None = None
    initial_codec_chunk_frames: int | None = None
    speed: float | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """A voice taken from a recording: the fields of SpeechRequest that a Base model speaks with it.

    speaker_embedding: float32 (hidden,). ref_codes: int64 (R, groups), with ref_text, what was said; both None: the vector alone.
    """

    speaker_embedding: NDArray[np.float32]
    ref_codes: NDArray[np.int64] | None = None
    ref_text: str | None = None

    def options(self) -> dict[str, Any]:
        """The fields that are not None by name: `voice.stream("Hello.", **reference.options())`."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class VoiceInfo:
    """A voice that a bundle offers; `language` names its dialect or main language where the checkpoint says so.

    description: who one hears, in a few words. origin: whose voice it is or what it was made from.
    """

    name: str
    language: str | None = None
    description: str = ""
    licence: str = ""
    origin: str = ""
