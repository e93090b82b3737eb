"""A TalkerAdapter made of a runtime's talker and code predictor: text rows, sampling, end rule (contract 5.1, 5.4).

A frame leaves as soon as its codes are known; the talker forward that consumes it waits for the next step, so the first
frame costs a prefill and one predictor run. Frames = sampled codebook-0 ids - 1: neither the end id nor the id at the limit
becomes a frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import Frame, PredictorCore, PromptRows, Rows, TalkerCore, TalkerSampling
from ouzel.errors import SynthesisError, UsageError
from ouzel.sampling import Codebook0, check, uniforms

_FEWEST_IDS = 2  # ids a prompt must leave room for: one frame and its successor
_OVERRUN = 11  # ids after a planned length: 0.8 s, in which the talker may still end by itself, and the end id
_DRAWN = 32  # frames whose random numbers are drawn at once
_ROOM = 400  # rows reserved beyond the prompt at the start (32 s of audio); longer utterances grow


@dataclass(slots=True, eq=False)
class TalkerState:
    """One utterance between two steps. Owned by the caller, freed by dropping it.

    hidden: float32 (hidden,) of the last row. code0: the last sampled id. frames: made so far, also the generator's counter.
    draws: float64 (32, groups), the random numbers of this run of frames.
    row: the next talker input, None right after the prefill. finish: "stop" or "length" once over.
    """

    kv: Any
    rows: PromptRows
    sampling: TalkerSampling
    chooser: Codebook0
    limit: int
    hidden: NDArray[np.float32]
    code0: int
    draws: NDArray[np.float64]
    frames: int = 0
    row: Rows | None = None
    finish: str | None = None


class ArTalker:
    """TalkerAdapter over two network calls. One thread at a time; states are independent of one another.

    codec_table: (vocab, hidden), E0. residual_table: (groups - 1, codes, hidden), Eq, in talker width (contract 4.2). Both
    float32 or float16; rows are summed as float32.
    """

    def __init__(
        self,
        core: TalkerCore,
        predictor: PredictorCore,
        codec_table: NDArray[Any],
        residual_table: NDArray[Any],
        *,
        context: int | None = None,
    ) -> None:
        """context: rows that prompt and frames of a segment may take, at most what the talker has; None = all of it."""
        widths = {core.hidden_size, codec_table.shape[1], residual_table.shape[2]}
        if len(widths) != 1:
            raise UsageError(
                f"Talker and embedding tables must have one width, not {sorted(widths)}: they are of different models."
            )
        self._core, self._predictor = core, predictor
        self._context = min(core.max_positions, context or core.max_positions)
        # As plain arrays: indexing a memory map costs microseconds more each time.
        self._codec, self._residual = codec_table.view(np.ndarray), residual_table.view(np.ndarray)
        self._groups = residual_table.shape[0] + 1
        self._levels = np.arange(self._groups - 1)

    @property
    def groups(self) -> int:
        """Codes in a frame."""
        return int(self._groups)

    def prefill(self, rows: PromptRows, sampling: TalkerSampling) -> TalkerState:
        """Run the prompt and sample the first id. UsageError for bad sampling values or a prompt beyond the context."""
        check(sampling)
        length, context = len(rows.prefill), self._context
        room = context - length
        if room < _FEWEST_IDS:
            raise UsageError(
                f"The prompt is {length} rows long and leaves no room in the talker's context of {context}: "
                "shorten the text, the instructions or the reference audio."
            )
        limit = min(sampling.max_tokens, room)
        if rows.frames is not None:
            limit = min(limit, rows.frames + _OVERRUN)
            sampling = replace(sampling, min_tokens=min(max(sampling.min_tokens, rows.frames), limit))
        chooser = Codebook0(sampling, self._core.vocab_size, self._residual.shape[1])
        kv = self._core.start(length + min(limit, _ROOM))
        draws = uniforms(sampling.seed, 0, self._groups, _DRAWN)
        hidden, code0 = self._forward(kv, rows.prefill, chooser, draws[0])
        return TalkerState(kv, rows, sampling, chooser, limit, hidden, code0, draws)

    def step(self, states: Sequence[TalkerState]) -> list[Frame]:
        """Advance each state by one frame, in order. A state that has finished reports its finish again."""
        return [self._step(state) for state in states]

    def _step(self, state: TalkerState) -> Frame:
        if state.finish is None and state.row is not None:
            if state.frames % _DRAWN == 0:
                state.draws = uniforms(state.sampling.seed, state.frames, self._groups, _DRAWN)
            draws = state.draws[state.frames % _DRAWN]
            state.hidden, state.code0 = self._forward(state.kv, state.row, state.chooser, draws)
            state.row = None
        if state.finish is None:
            if state.code0 in state.sampling.stop_token_ids:
                state.finish = "stop"
            elif state.chooser.count >= state.limit:
                state.finish = "length"
        if state.finish is not None:
            state.kv = state.row = None  # the buffers are of use to the next utterance
            return Frame(None, state.finish)
        draws = state.draws[state.frames % _DRAWN]
        codes = np.empty(self._groups, np.int64)
        codes[0] = state.code0
        codes[1:] = self._predictor.frame(state.hidden, state.code0, state.sampling.subtalker, draws[1:])
        state.row = self._next_row(state, codes)
        state.frames += 1
        return Frame(codes)

    def _next_row(self, state: TalkerState, codes: NDArray[np.int64]) -> Rows:
        """E0(c0) + sum of Eq(c_q) + text row, float32 (1, hidden) (contract 5.1)."""
        row = self._residual[self._levels, codes[1:]].sum(0, dtype=np.float32)
        row += self._codec[codes[0]]
        trailing = state.rows.trailing
        row += trailing[state.frames] if state.frames < len(trailing) else state.rows.pad
        result: Rows = row[np.newaxis]
        return result

    def _forward(self, kv: Any, rows: Rows, chooser: Codebook0, draws: NDArray[np.float64]) -> tuple[NDArray[np.float32], int]:
        hidden, logits = self._core.forward(kv, rows)
        code0 = chooser.choose(logits, float(draws[0]))
        if not np.isfinite(hidden).all():
            raise SynthesisError("The talker gave hidden values that are not finite; its weights or precision are unusable.")
        return hidden, code0
