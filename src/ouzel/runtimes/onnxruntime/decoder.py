"""The codec decoder on ONNX Runtime: a DecoderAdapter over a graph with explicit state (see docs/decoder.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import Codes
from ouzel.errors import BundleError, SynthesisError, UsageError
from ouzel.runtimes.onnxruntime.export_decoder import CODES, SAMPLES, next_name
from ouzel.runtimes.onnxruntime.meta import sizes
from ouzel.runtimes.onnxruntime.session import buffer, open_session, run_bound, session_options, zeros

Samples = NDArray[np.float32]


class DecoderState:
    """What one utterance's decoder remembers: two sets of state tensors, read and written in turn.

    frames: how many frames it has decoded, reference frames included. One thread at a time.
    """

    def __init__(self, session: Any, layout: Mapping[str, tuple[int, ...]]) -> None:
        self.frames = 0
        self._session, self._layout = session, layout
        self._sets = [{name: zeros(shape) for name, shape in layout.items()} for _ in range(2)]
        self._current = 0
        # Bound once: a call then changes two bindings, not one a tensor.
        self._bindings = [self._bind(self._sets[i], self._sets[1 - i]) for i in range(2)]

    def _bind(self, source: Mapping[str, tuple[Any, Any]], target: Mapping[str, tuple[Any, Any]]) -> Any:
        binding = self._session.io_binding()
        for name, (_, value) in source.items():
            binding.bind_ortvalue_input(name, value)
        for name, (_, value) in target.items():
            binding.bind_ortvalue_output(next_name(name), value)
        return binding

    def advance(self, codes: Codes, samples: Samples) -> None:
        """Run the graph: codes int64 (n, groups) into `samples`, a contiguous array that it fills. On an error nothing moves."""
        binding = self._bindings[self._current]
        binding.bind_ortvalue_input(CODES, buffer(codes))
        binding.bind_ortvalue_output(SAMPLES, buffer(samples))
        run_bound(self._session, binding)
        self._current = 1 - self._current
        self.frames += len(codes)

    def tensors(self) -> dict[str, NDArray[np.float32]]:
        """The current values by name; views that the next call but one overwrites."""
        return {name: array for name, (array, _) in self._sets[self._current].items()}

    def clone(self) -> DecoderState:
        """An independent state that goes on from here."""
        twin = DecoderState(self._session, self._layout)
        for name, array in twin.tensors().items():
            array[...] = self._sets[self._current][name][0]
        twin.frames = self.frames
        return twin


@dataclass(frozen=True, slots=True)
class DecoderMeta:
    """What an artifact's meta says of the graph; the names are those of the network's spec."""

    groups: int
    codebook_size: int
    samples_per_frame: int
    sample_rate: int
    max_new: int
    layout: dict[str, tuple[int, ...]]

    @classmethod
    def parse(cls, meta: Mapping[str, Any]) -> DecoderMeta:
        """Raises BundleError when a field is missing or of the wrong kind."""
        try:
            found = sizes("decoder", meta, [name for name in cls.__slots__ if name != "layout"])
            layout = {entry["name"]: tuple(int(n) for n in entry["shape"]) for entry in meta["state"]}
        except (KeyError, TypeError, ValueError) as error:
            raise BundleError(
                f"The decoder's meta in the manifest is incomplete ({error!r}); convert the bundle again."
            ) from error
        if not layout:
            raise BundleError("The decoder's meta in the manifest has no state tensors; convert the bundle again.")
        return cls(layout=layout, **found)


class OrtDecoder:
    """DecoderAdapter; equal to the decode of the whole utterance for any chunking, and bit-reproducible for the same chunks.

    Long chunks are run in pieces of `max_new` frames at most, which bounds memory. One thread at a time uses a decoder.
    """

    left_context_frames = 0
    """The state holds all context: a chunk is its new frames only."""

    def __init__(self, path: Path, meta: Mapping[str, Any], *, threads: int = 0) -> None:
        """path: the graph of an artifact; meta: the artifact's. BundleError when they do not fit."""
        self._meta = DecoderMeta.parse(meta)
        options = session_options(threads)
        # A memory plan is kept for each number of frames, in blocks of their own: 50 MB more with the published codec, no faster.
        options.enable_mem_pattern = False
        self._session = open_session(path, options=options)
        found = {value.name: tuple(value.shape) for value in self._session.get_inputs()}
        found.pop(CODES, None)
        if found != self._meta.layout:
            raise BundleError(f"{path} has other state tensors than the manifest says; convert the bundle again.")

    @property
    def sample_rate(self) -> int:
        """Hz."""
        return self._meta.sample_rate

    @property
    def samples_per_frame(self) -> int:
        """Samples that one frame of codes becomes."""
        return self._meta.samples_per_frame

    def start(self, reference_codes: Codes | None = None) -> DecoderState:
        """A fresh state. With reference codes (R, groups) the state follows them and their samples are dropped."""
        state = DecoderState(self._session, self._meta.layout)
        if reference_codes is not None and len(reference_codes):
            self.decode(state, reference_codes)
        return state

    def decode(self, state: DecoderState, codes: Codes, *, last: bool = False) -> Samples:
        """Advance `state` by codes, integers (n, groups), n >= 1; float32 (n * samples_per_frame,) in [-1, 1].

        `last` changes nothing: the network does not look ahead. UsageError for codes of another shape or type, SynthesisError
        for an id outside the codebook or samples that are no numbers; `state` has not moved after an error about codes.
        """
        rows = self._checked(codes)
        count, per_frame = len(rows), self._meta.samples_per_frame
        samples = np.empty(count * per_frame, np.float32)
        pieces = -(-count // self._meta.max_new)
        first = state.frames
        for i in range(pieces):
            start, stop = count * i // pieces, count * (i + 1) // pieces
            state.advance(rows[start:stop], samples[start * per_frame : stop * per_frame])
        if not np.isfinite(samples).all():
            frame = first + int(np.argmin(np.isfinite(samples))) // per_frame
            raise SynthesisError(f"The codec decoder made samples that are not numbers, from frame {frame} of the utterance on.")
        return samples

    def _checked(self, codes: Codes) -> Codes:
        rows = np.asarray(codes)
        groups, size = self._meta.groups, self._meta.codebook_size
        if rows.ndim != 2 or rows.shape[1] != groups or not len(rows):
            raise UsageError(f"The codec decoder takes codes of shape (frames >= 1, {groups}), not {rows.shape}.")
        if rows.dtype.kind not in "iu":
            raise UsageError(f"The codec decoder takes integer codes, not {rows.dtype}.")
        wrong = (rows < 0) | (rows >= size)
        if wrong.any():
            frame, group = (int(i) for i in np.argwhere(wrong)[0])
            raise SynthesisError(
                f"Code {int(rows[frame, group])} in frame {frame}, codebook {group} is outside the codec's 0..{size - 1}."
            )
        return np.ascontiguousarray(rows, np.int64)
