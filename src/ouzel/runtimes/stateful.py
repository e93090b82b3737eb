"""What stateful codec decoders share, whatever runs their graph: checks, long chunks in pieces, the artifact's meta."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import Codes
from ouzel.errors import BundleError, SynthesisError, UsageError
from ouzel.runtimes.meta import sizes

Samples = NDArray[np.float32]


class DecoderState(Protocol):
    """What one utterance's decoder remembers. frames: how many it has decoded, reference frames included."""

    frames: int

    def advance(self, codes: Codes, samples: Samples) -> None:
        """Run the graph: codes int64 (n, groups) into `samples`, a contiguous array that it fills. On an error nothing moves."""

    def tensors(self) -> dict[str, NDArray[np.float32]]:
        """The current values by name."""

    def clone(self) -> Self:
        """An independent state that goes on from here."""


State = TypeVar("State", bound=DecoderState)


def require_finite(advanced: Iterable[NDArray[np.float32]], frame: int) -> None:
    """SynthesisError when the state behind `frame` is no numbers, for runtimes whose clip makes samples of what is none."""
    if not all(np.isfinite(array).all() for array in advanced):
        raise SynthesisError(f"The codec decoder's state is not finite from frame {frame} of the utterance on.")


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


class StatefulDecoder(ABC, Generic[State]):
    """DecoderAdapter; equal to the decode of the whole utterance for any chunking, and bit-reproducible for the same chunks.

    Long chunks are run in pieces of `max_new` frames at most, which bounds memory. One thread at a time uses a decoder.
    """

    left_context_frames = 0
    """The state holds all context: a chunk is its new frames only."""

    def __init__(self, meta: Mapping[str, Any]) -> None:
        """meta: the artifact's. BundleError when it is incomplete."""
        self.meta = DecoderMeta.parse(meta)

    @property
    def sample_rate(self) -> int:
        """Hz."""
        return self.meta.sample_rate

    @property
    def samples_per_frame(self) -> int:
        """Samples that one frame of codes becomes."""
        return self.meta.samples_per_frame

    def start(self, reference_codes: Codes | None = None) -> State:
        """A fresh state. With reference codes (R, groups) the state follows them and their samples are dropped."""
        state = self._fresh()
        if reference_codes is not None and len(reference_codes):
            self.decode(state, reference_codes)
        return state

    def decode(self, state: State, codes: Codes, *, last: bool = False) -> Samples:
        """Advance `state` by codes, integers (n, groups), n >= 1; float32 (n * samples_per_frame,) in [-1, 1].

        `last` changes nothing: the network does not look ahead. UsageError for codes of another shape or type, SynthesisError
        for an id outside the codebook or samples that are no numbers; `state` has not moved after an error about codes.
        """
        rows = self._checked(codes)
        count, per_frame = len(rows), self.meta.samples_per_frame
        samples = np.empty(count * per_frame, np.float32)
        pieces = -(-count // self.meta.max_new)
        first = state.frames
        for i in range(pieces):
            start, stop = count * i // pieces, count * (i + 1) // pieces
            state.advance(rows[start:stop], samples[start * per_frame : stop * per_frame])
        if not np.isfinite(samples).all():
            frame = first + int(np.argmin(np.isfinite(samples))) // per_frame
            raise SynthesisError(f"The codec decoder made samples that are not numbers, from frame {frame} of the utterance on.")
        return samples

    @abstractmethod
    def _fresh(self) -> State:
        """The state at the start of an utterance."""

    def _checked(self, codes: Codes) -> Codes:
        rows = np.asarray(codes)
        groups, size = self.meta.groups, self.meta.codebook_size
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
