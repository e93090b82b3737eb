"""The codec decoder on ggml: a DecoderAdapter whose state is the caller's, exact for any chunking (docs/runtime-llama_cpp.md).

llama.cpp's multimodal library decodes the same file in windows of 72 frames, whatever is asked for, with half precision forced on
its convolutions. The graphs here compute the new frames only, in float32.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import Codes
from ouzel.errors import SynthesisError, UsageError
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.llama_cpp.decoder_graph import DILATIONS, KERNEL, DecoderGraph, Input, Net
from ouzel.runtimes.llama_cpp.decoder_weights import PRE_KERNEL, DecoderMeta, Quantiser, read_weights
from ouzel.runtimes.llama_cpp.ggml import Arena, Backend
from ouzel.runtimes.llama_cpp.gguf_file import GgufFile
from ouzel.runtimes.llama_cpp.library import library
from ouzel.runtimes.llama_cpp.meta import threads_of

if TYPE_CHECKING:
    from ouzel.bundle import Artifact, Bundle

Samples = NDArray[np.float32]

MAX_NEW = 4
"""Frames of one run at most: longer chunks go in pieces, which bounds memory and keeps the signals near the caches."""


class DecoderState:
    """What one utterance's decoder remembers: the last columns of each layer's input. frames: decoded so far."""

    def __init__(self, tails: dict[str, Samples]) -> None:
        self.frames, self.tails = 0, tails

    def clone(self) -> DecoderState:
        """An independent state that goes on from here."""
        twin = DecoderState({name: tail.copy() for name, tail in self.tails.items()})
        twin.frames = self.frames
        return twin


class LlamaDecoder:
    """DecoderAdapter. One thread at a time, `interrupt` aside; equal to the decode of the whole utterance for any chunking."""

    left_context_frames = 0
    """The state holds all context: a chunk is its new frames only."""

    def __init__(self, bundle: Bundle, artifact: Artifact, options: StageOptions) -> None:
        """Loads the artifact's first file. BundleError when it is of another model, lacks tensors or is damaged."""
        self._meta = meta = DecoderMeta.parse(artifact)
        file = GgufFile(bundle.path(artifact.files[0]))
        self._quantiser = Quantiser(file, meta)
        self._backend = Backend(library(), threads_of(options))
        self._net = self._read(file)
        self._graphs: dict[int, DecoderGraph] = {}

    @property
    def sample_rate(self) -> int:
        """Hz."""
        return self._meta.size["sample_rate"]

    @property
    def samples_per_frame(self) -> int:
        """Samples that one frame of codes becomes."""
        return self._meta.size["samples_per_frame"]

    def interrupt(self) -> None:
        """End the decoding that runs on another thread, if any, at its next operator; it raises SynthesisError there."""
        self._backend.switch.stop()

    def start(self, reference_codes: Codes | None = None) -> DecoderState:
        """A fresh state. With reference codes (R, groups) the state follows them and their samples are dropped."""
        inputs = self._net.inputs.items()
        state = DecoderState({name: np.zeros((given.past, given.channels), np.float32) for name, given in inputs})
        if reference_codes is not None and len(reference_codes):
            self.decode(state, reference_codes)
        return state

    def decode(self, state: DecoderState, codes: Codes, *, last: bool = False) -> Samples:
        """Advance `state` by codes, integers (n, groups), n >= 1; float32 (n * samples_per_frame,) in [-1, 1].

        `last` changes nothing: the network does not look ahead. UsageError for codes of another shape or type, SynthesisError
        for an id outside the codebook, samples that are no numbers, or an interruption. After an error about codes `state` has
        not moved; after another one it is of no further use.
        """
        rows = self._checked(codes)
        count, first = len(rows), state.frames
        self._backend.switch.reset()
        pieces = -(-count // MAX_NEW)
        bounds = [count * i // pieces for i in range(pieces + 1)]
        samples = np.concatenate([self._advance(state, rows[a:b]) for a, b in itertools.pairwise(bounds)])
        if not np.isfinite(samples).all():
            frame = first + int(np.argmin(np.isfinite(samples))) // self.samples_per_frame
            raise SynthesisError(f"The codec decoder made samples that are not numbers, from frame {frame} of the utterance on.")
        return samples.clip(-1.0, 1.0, out=samples)

    def _advance(self, state: DecoderState, codes: Codes) -> Samples:
        net, frames = self._net, len(codes)
        graph = self._graphs.get(frames) or self._graphs.setdefault(frames, DecoderGraph(net, frames))
        for name, given in net.inputs.items():
            given.array[: given.past] = state.tails[name]
        pre = net.inputs["pre_conv"]
        pre.array[pre.past : pre.past + frames] = self._quantiser.rows(codes)
        past = self._meta.size["window"] - 1
        distance = past + np.arange(frames)[:, None] - np.arange(past + frames)
        seen = (distance >= 0) & (distance <= past) & (np.arange(past + frames) >= past - state.frames)
        net.mask[: seen.size] = np.where(seen, 0, -np.inf).reshape(-1)
        samples = graph.run().copy()
        for name, given in net.inputs.items():
            state.tails[name][:] = given.array[given.rate * frames :][: given.past]
        state.frames += frames
        return samples

    def _read(self, file: GgufFile) -> Net:
        meta, size = self._meta, self._meta.size
        shapes = meta.shapes()
        arena = Arena(self._backend, 2 * len(shapes) + 64)
        weights: dict[str, int] = {}

        def place(name: str, values: Samples) -> None:
            weights[name], array = arena.array(values.shape)
            array[...] = values

        read_weights(file, meta, place)
        past = size["window"] - 1
        positions, numbers = arena.array((past + MAX_NEW,), np.int32)
        numbers[:] = np.arange(past + MAX_NEW)
        mask, mask_array = arena.array((MAX_NEW * (past + MAX_NEW),))
        samples, samples_array = arena.array((MAX_NEW * size["samples_per_frame"],))
        return Net(
            arena=arena,
            weights=weights,
            inputs=self._inputs(arena),
            positions=positions,
            mask_tensor=mask,
            mask=mask_array,
            samples_tensor=samples,
            samples=samples_array,
            samples_per_frame=size["samples_per_frame"],
            layers=size["layers"],
            heads=size["heads"],
            kv_heads=size["kv_heads"],
            head_dim=size["head_dim"],
            epsilon=meta.epsilon,
            theta=meta.theta,
            latent=size["latent"],
            channels=size["channels"],
            ratios=meta.ratios,
            rates=meta.rates,
            units=meta.units,
        )

    def _inputs(self, arena: Arena) -> dict[str, Input]:
        """Layer -> its input, of every layer that needs the past."""
        meta, size = self._meta, self._meta.size
        found: dict[str, Input] = {}

        def add(name: str, past: int, channels: int, rate: int, taps: int = 1) -> None:
            columns = past + MAX_NEW * rate
            tensor, array = arena.array((columns, channels), seeming=(columns * taps, channels))
            found[name] = Input(tensor, array, past, rate)

        rate, latent = 1, size["latent"]
        add("pre_conv", PRE_KERNEL - 1, size["codebook_dim"], rate, PRE_KERNEL)
        for i in range(size["layers"]):
            for name in ("keys", "values"):
                add(f"tfm.blk.{i}.{name}", size["window"] - 1, size["kv_heads"] * size["head_dim"], rate)
        for i, ratio in enumerate(meta.ratios):
            rate *= ratio
            add(f"up.blk.{i}.dwconv", KERNEL - 1, latent, rate)
        add("dac.entry", KERNEL - 1, latent, rate, KERNEL)
        wide = size["channels"]
        for i, step in enumerate(meta.rates):
            add(f"dac.blk.{i}.conv", 1, wide, rate, 2)
            rate, wide = rate * step, wide // 2
            for j in meta.units[i]:
                add(f"dac.blk.{i}.res.{j}.conv1", (KERNEL - 1) * DILATIONS[j], wide, rate, KERNEL)
        add("dac.post_conv", KERNEL - 1, wide, rate, KERNEL)
        return found

    def _checked(self, codes: Codes) -> Codes:
        rows = np.asarray(codes)
        groups, codebook = self._meta.size["groups"], self._meta.size["codebook_size"]
        if rows.ndim != 2 or rows.shape[1] != groups or not len(rows):
            raise UsageError(f"The codec decoder takes codes of shape (frames >= 1, {groups}), not {rows.shape}.")
        if rows.dtype.kind not in "iu":
            raise UsageError(f"The codec decoder takes integer codes, not {rows.dtype}.")
        wrong = (rows < 0) | (rows >= codebook)
        if wrong.any():
            frame, group = (int(i) for i in np.argwhere(wrong)[0])
            raise SynthesisError(
                f"Code {int(rows[frame, group])} in frame {frame}, codebook {group} is outside the codec's 0..{codebook - 1}."
            )
        return np.ascontiguousarray(rows, np.int64)
