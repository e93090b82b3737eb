"""Codec frames between talker and decoder in the server's layout, so that either side may be a vLLM-Omni stage (contract 3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import Codes
from ouzel.errors import SynthesisError, UsageError
from ouzel.schedule import ScheduleRun

GROUPS = 16
CODEBOOK_SIZE = 2048
REF_CONTEXT_FRAMES = 72

FlatCodes = NDArray[np.int64]  # (groups * frames,), codebook-major: index = q * frames + f


@dataclass(frozen=True, slots=True)
class CodecPayload:
    """One message from the talker stage to the decoder stage (contract 3.7).

    codes: int64 (16 * F,), codebook-major, reference frames included; empty in the end marker.
    left_context_size: reference frames in front, 0 in all but the first chunk of a cloned voice.
    finished: nothing follows. ref_context_*: set together with left_context_size in streaming mode.
    Raises UsageError if the length is not a multiple of 16 or the context exceeds the frames.
    """

    codes: FlatCodes
    request_id: str = ""
    left_context_size: int = 0
    finished: bool = False
    ref_context_size: int | None = None
    ref_context_request_id: str | None = None
    ref_context_included: bool | None = None
    speaker: str | None = None
    language: str | None = None

    def __post_init__(self) -> None:
        if self.codes.ndim != 1 or self.codes.dtype != np.int64:
            raise UsageError(f"Codec codes travel as a flat int64 array, got {self.codes.dtype} of shape {self.codes.shape}.")
        if len(self.codes) % GROUPS:
            raise UsageError(f"A codec payload of {len(self.codes)} ids is not a whole number of frames of {GROUPS}.")
        if not 0 <= self.left_context_size <= self.frame_count:
            raise UsageError(f"left_context_size {self.left_context_size} does not fit into {self.frame_count} frames.")

    @property
    def frame_count(self) -> int:
        """Frames inside, reference included."""
        return len(self.codes) // GROUPS

    def frames(self) -> Codes:
        """All frames, int64 (F, 16), reference first."""
        return np.ascontiguousarray(self.codes.reshape(GROUPS, -1).T)

    def split(self) -> tuple[Codes, Codes]:
        """(reference frames, new frames), int64 (R, 16) and (F - R, 16)."""
        frames = self.frames()
        return frames[: self.left_context_size], frames[self.left_context_size :]

    @classmethod
    def from_frames(
        cls,
        frames: Codes,
        *,
        reference: Codes | None = None,
        request_id: str = "",
        finished: bool = False,
        speaker: str | None = None,
        language: str | None = None,
    ) -> CodecPayload:
        """Flatten frames (F, 16) with optional reference frames (R, 16) in front. Raises UsageError on other shapes or ids."""
        rows = _checked(frames)
        size = 0 if reference is None else len(reference)
        if reference is not None and size:
            rows = np.concatenate([_checked(reference), rows])
        return cls(
            np.ascontiguousarray(rows.T).reshape(-1),
            request_id=request_id,
            left_context_size=size,
            finished=finished,
            ref_context_size=size or None,
            ref_context_request_id=request_id if size else None,
            ref_context_included=True if size else None,
            speaker=speaker,
            language=language,
        )


@dataclass(frozen=True, slots=True)
class TalkerOutput:
    """What the talker stage hands over (contract 3.1, 3.9).

    audio: int64 (n, 16) or (16,); in streaming only the last row is new. frame_valid: one flag a row, or one for the last;
    None if the producer does not say. ref: reference codes (R, 16) or flat. ref_len: frames of `ref` to use, 0 = all (sync only).
    """

    audio: NDArray[np.int64] | None = None
    frame_valid: bool | NDArray[np.bool_] | None = None
    ref: NDArray[np.int64] | None = None
    ref_len: int = 0


class AsyncChunkProcessor:
    """Streaming state of one request: its frames not shipped yet, its schedule, its reference. Drop it to forget the request.

    run: from `ScheduleSpec.start`. ref_context_frames: the last so many reference frames go in front of the first chunk
    (0 = all). speaker, language: copied into every payload but the end marker.
    """

    def __init__(
        self,
        request_id: str,
        run: ScheduleRun,
        *,
        ref_context_frames: int = REF_CONTEXT_FRAMES,
        speaker: str | None = None,
        language: str | None = None,
    ) -> None:
        if ref_context_frames < 0:
            raise UsageError(f"ref_code_context_frames must be 0 (all) or more, got {ref_context_frames}.")
        self.request_id = request_id
        self.run = run
        self._keep = ref_context_frames
        self._speaker = speaker
        self._language = language
        self._pending: list[NDArray[np.int64]] = []
        self._total = 0
        self._reference: Codes | None = None

    def step(self, output: TalkerOutput | None, now_ms: float, *, finished: bool = False) -> CodecPayload | None:
        """One talker step; returns the payload that is due, the empty end marker, or None. Raises as `CodecPayload` does."""
        if output is None and not finished:
            return None
        if output is not None:
            self._take(output)
        count = self.run.offer(self._total, now_ms, finished=finished)
        if count == 0:
            return CodecPayload(np.zeros(0, np.int64), request_id=self.request_id, finished=True) if finished else None
        rows, self._pending = np.stack(self._pending[:count]), self._pending[count:]
        first = len(self.run.sizes) == 1
        return CodecPayload.from_frames(
            rows,
            reference=self._reference if first else None,
            request_id=self.request_id,
            finished=finished,
            speaker=self._speaker,
            language=self._language,
        )

    def _take(self, output: TalkerOutput) -> None:
        row = _last_row(output.audio)
        if row is not None and _is_frame(row, output.frame_valid):
            self._pending.append(_checked(row[None])[0])
            self._total += 1
        if self._reference is None and output.ref is not None and output.ref.size:
            reference = _reference(output.ref)
            self._reference = reference[-self._keep :] if self._keep else reference


def talker2code2wav_async_chunk(
    state: AsyncChunkProcessor, output: TalkerOutput | None, now_ms: float, *, finished: bool = False
) -> CodecPayload | None:
    """Streaming payload builder, called once a talker step (contract 3.1 to 3.7)."""
    return state.step(output, now_ms, finished=finished)


def talker2code2wav_full_payload(output: TalkerOutput | None, *, output_tokens: int = 0, request_id: str = "") -> CodecPayload:
    """Sync payload builder: every usable frame of an utterance at once (contract 3.8, 3.9).

    output_tokens: ids the talker sampled, the end id included; at most one frame less is kept, the last ones. 0 keeps all.
    Without any usable frame the answer is one frame of ones, since an empty payload would hang the server's decoder stage.
    """
    frames = _usable(output, output_tokens)
    if output is None or not len(frames):
        return CodecPayload(np.ones(GROUPS, np.int64), request_id=request_id, finished=True)
    return CodecPayload.from_frames(frames, reference=_sync_reference(output), request_id=request_id, finished=True)


@dataclass(frozen=True, slots=True)
class DecoderPlaceholder:
    """Prompt of the decoder stage in sync mode: so many zero ids; the codes follow in the payload."""

    prompt_len: int
    left_context_size: int


def talker2code2wav_token_only(outputs: Iterable[tuple[TalkerOutput | None, int]]) -> list[DecoderPlaceholder]:
    """Placeholders for finished talker outputs, each with its number of sampled ids: 16 ids for every frame (contract 3.9)."""
    placeholders = []
    for output, output_tokens in outputs:
        reference = None if output is None else _sync_reference(output)
        size = 0 if reference is None else len(reference)
        placeholders.append(DecoderPlaceholder(GROUPS * (size + len(_usable(output, output_tokens))), size))
    return placeholders


def filter_frames(frames: Codes) -> Codes:
    """Rows that can be codec frames: no negative id, none from 2048 on, not all zero (contract 3.8)."""
    valid = (frames >= 0).all(axis=1) & frames.any(axis=1) & (frames < CODEBOOK_SIZE).all(axis=1)
    return frames[valid]


def _usable(output: TalkerOutput | None, output_tokens: int) -> Codes:
    if output is None or output.audio is None or output.audio.size == 0:
        return np.zeros((0, GROUPS), np.int64)
    frames = filter_frames(_shaped(output.audio))
    limit = output_tokens - 1
    return frames[-limit:] if limit > 0 else frames


def _sync_reference(output: TalkerOutput) -> Codes | None:
    if output.ref is None or output.ref.size == 0:
        return None
    reference = _reference(output.ref)
    return reference[: output.ref_len] if output.ref_len > 0 else reference


def _last_row(audio: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
    if audio is None or audio.size == 0:
        return None
    if audio.ndim > 2:
        raise UsageError(f"Talker codes must be one row or (rows, {GROUPS}), got shape {audio.shape}.")
    return np.asarray(audio[-1] if audio.ndim == 2 else audio, np.int64)


def _is_frame(row: NDArray[np.int64], frame_valid: bool | NDArray[np.bool_] | None) -> bool:
    """The validity flag of the last row; without flags, a row of zeros stands for "no frame" (contract 3.1)."""
    if frame_valid is None:
        return bool(row.any())
    flags = np.reshape(frame_valid, -1)
    if not flags.size:
        raise SynthesisError("The talker sent an empty codec_frame_valid, which says nothing about its row of codes.")
    return bool(flags[-1])


def _reference(ref: NDArray[np.int64]) -> Codes:
    """Reference codes as (R, 16). The server ignores a malformed one and goes on with another voice; here it is an error."""
    if ref.ndim == 1:
        if len(ref) % GROUPS:
            raise UsageError(f"Reference codes of {len(ref)} ids are not a whole number of frames of {GROUPS}.")
        ref = ref.reshape(-1, GROUPS)
    return _checked(ref)


def _shaped(frames: NDArray[np.int64]) -> Codes:
    if frames.ndim != 2 or frames.shape[1] != GROUPS or not np.issubdtype(frames.dtype, np.integer):
        raise UsageError(f"Codec frames must be whole numbers of shape (frames, {GROUPS}), got {frames.dtype} {frames.shape}.")
    return frames.astype(np.int64, copy=False)


def _checked(frames: NDArray[np.int64]) -> Codes:
    rows = _shaped(frames)
    if rows.size and not (rows.min() >= 0 and rows.max() < CODEBOOK_SIZE):
        raise UsageError(f"Codec ids must be 0..{CODEBOOK_SIZE - 1}, got {rows.min()}..{rows.max()}.")
    return rows
