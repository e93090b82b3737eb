"""What a stage must offer, whatever runtime carries it out, and the values that pass between stages.

State is data that the caller owns: create, advance, drop. Nothing here knows a model family or a runtime.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]  # (n, hidden): talker input rows
Codes = NDArray[np.int64]  # (frames, groups): one row a codec frame, codebook 0 first


@dataclass(frozen=True, slots=True)
class PromptRows:
    """Talker input of one segment (contract 4.4).

    prefill: float32 (P, hidden), P >= 2.
    trailing: float32 (T, hidden), text rows added one a frame after the prefill; T may be 0.
    pad: float32 (hidden,), the text row once `trailing` is used up.
    text_tokens: ids of the spoken text (without template), the base of the frame budget and of usage figures.
    frames: how many the text takes, for models whose text side plans that; a talker that goes on much longer has missed its end.
    """

    prefill: Rows
    trailing: Rows
    pad: NDArray[np.float32]
    text_tokens: int
    frames: int | None = None


@dataclass(frozen=True, slots=True)
class SubtalkerSampling:
    """Sampling of codebooks 1.. (contract 5.3): top-k keeps ties; top_p other than 1 is refused by the server."""

    do_sample: bool = True
    temperature: float = 0.9
    top_k: int = 50
    top_p: float = 1.0


@dataclass(frozen=True, slots=True)
class TalkerSampling:
    """Sampling of one utterance (contract 5.4). temperature 0 = greedy for codebook 0.

    max_tokens: codebook-0 ids sampled at most, the end id included; frames <= max_tokens - 1 (contract 5.1).
    allow_id_zero: official qwen_tts allows codec id 0, vLLM-Omni masks it (contract 3.8).
    penalise_id_one: vLLM-Omni's placeholder prompt makes id 1 count as seen from the start (contract 4.6).
    seed: 64-bit key of the utterance's counter-based generator.
    """

    temperature: float = 0.9
    top_k: int = 50
    top_p: float = 1.0
    repetition_penalty: float = 1.05
    min_tokens: int = 2
    max_tokens: int = 4096
    stop_token_ids: tuple[int, ...] = (2150,)
    seed: int = 0
    allow_id_zero: bool = False
    penalise_id_one: bool = False
    subtalker: SubtalkerSampling = field(default_factory=SubtalkerSampling)

    def greedy(self) -> TalkerSampling:
        """The same limits with every random choice taken out (contract 5.5)."""
        return replace(self, temperature=0.0, subtalker=replace(self.subtalker, do_sample=False))


@dataclass(frozen=True, slots=True)
class Frame:
    """One talker step: `codes` int64 (groups,), or None with `finish` set to "stop" (end id) or "length"."""

    codes: NDArray[np.int64] | None
    finish: str | None = None


@runtime_checkable
class TalkerAdapter(Protocol):
    """Text rows in, one frame a step out. States are opaque values owned by the caller."""

    @property
    def groups(self) -> int: ...

    def prefill(self, rows: PromptRows, sampling: TalkerSampling) -> Any:
        """Run the prompt; returns the state that `step` advances. Refuses prompts beyond the context."""

    def step(self, states: Sequence[Any]) -> Sequence[Frame]:
        """Advance each state by one frame, results independent of what else is in the list."""


@runtime_checkable
class DecoderAdapter(Protocol):
    """Frames in, samples out; exact for any chunking (no recomputed context)."""

    @property
    def sample_rate(self) -> int: ...
    @property
    def samples_per_frame(self) -> int: ...
    @property
    def left_context_frames(self) -> int: ...

    def start(self, reference_codes: Codes | None = None) -> Any:
        """A fresh state; with reference codes (R, groups), their state is primed and their samples dropped."""

    def decode(self, state: Any, codes: Codes, *, last: bool = False) -> NDArray[np.float32]:
        """Advance `state` by codes (n, groups), n >= 1; float32 (n * samples_per_frame,). Raises on bad ids."""


@runtime_checkable
class SpeakerAdapter(Protocol):
    """A recording in, its speaker out."""

    @property
    def sample_rate(self) -> int: ...

    def embed(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """samples (n,), mono, at `sample_rate` Hz -> speaker vector, float32 (hidden,)."""


@runtime_checkable
class CodecEncoderAdapter(Protocol):
    """A recording in, its codec frames out."""

    @property
    def sample_rate(self) -> int: ...

    def encode(self, samples: NDArray[np.float32]) -> Codes:
        """samples (n,), mono, at `sample_rate` Hz -> codes of every frame that has begun."""


# ---- what a runtime implements of an autoregressive talker; `ouzel.autoregressive.ArTalker` makes a TalkerAdapter of both


@runtime_checkable
class TalkerCore(Protocol):
    """The talker network of one runtime."""

    @property
    def hidden_size(self) -> int: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def max_positions(self) -> int: ...

    def start(self, positions: int) -> Any:
        """A fresh key/value state that can hold at least `positions` rows (it may grow later)."""

    def forward(self, state: Any, rows: Rows) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Append rows (n, hidden) and return, for the last one, (hidden (H,), codebook-0 logits (V,)), both fresh arrays."""


@runtime_checkable
class PredictorCore(Protocol):
    """The code predictor network of one runtime; keeps no state between frames."""

    def frame(
        self,
        hidden: NDArray[np.float32],
        code0: int,
        sampling: SubtalkerSampling,
        uniforms: NDArray[np.float64],
    ) -> NDArray[np.int64]:
        """Codes 1.. of the frame, int64 (groups - 1,). `uniforms` (groups - 1,) in [0, 1) drive the choices."""
