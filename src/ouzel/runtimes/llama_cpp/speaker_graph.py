"""The speaker encoder's operators over ggml, for one recording's length; signals are (time, channels), channels contiguous.

A convolution is one product with the columns of its taps side by side, mirrored margins included: a table of row numbers picks
them. ggml's own convolutions would round to half precision. What is summed over time is turned, (channels, time).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from ouzel.runtimes.llama_cpp.ggml import Arena, Backend, Graph, Tensor
from ouzel.runtimes.llama_cpp.speaker_weights import SpeakerMeta

_LEAST_VARIANCE = 1e-12


class SpeakerGraph:
    """One graph; it is run once: `vector(mel)`."""

    def __init__(self, backend: Backend, meta: SpeakerMeta, weights: Mapping[str, Tensor], frames: int) -> None:
        """frames: more than any convolution's margin (`SpeakerMeta.margin`)."""
        self._meta, self._w, self._frames = meta, weights, frames
        blocks, groups, width = meta.blocks, meta.size["groups"], meta.size["hidden_size"]
        self._arena = Arena(backend, 2 + len(meta.convolutions))
        self._graph = Graph(self._arena, 64 + blocks * (32 + 16 * groups))
        self._rows: dict[tuple[int, int], Tensor] = {}
        entry, self._mel = self._arena.array((frames, meta.size["bands"]))
        leave, self._vector = self._arena.array((width,))
        self._graph.store(self._build(entry), leave)
        self._graph.finish()

    def vector(self, mel: NDArray[np.float32]) -> NDArray[np.float32]:
        """mel (frames, bands) -> (hidden,)."""
        self._mel[...] = mel
        self._graph.run()
        return self._vector.copy()

    def _build(self, mel: Tensor) -> Tensor:
        first, *inner, last = self._meta.convolutions
        x = self._tdnn("a.conv1d.0", mel, self._meta.size["bands"], first)
        found = []
        for i, shape in enumerate(inner, start=1):
            x = self._block(f"a.blk.{i}.", x, shape)
            found.append(x)
        x = self._tdnn("a.conv_out", self._joined(found), self._meta.gathered, last)
        return self._linear("mm.a.fc", self._pool(x))

    def _block(self, at: str, x: Tensor, shape: tuple[int, int]) -> Tensor:
        graph, wide, groups = self._graph, self._meta.size["channels"], self._meta.size["groups"]
        part = wide // groups
        entered = graph.relu(self._linear(f"{at}conv_pw1", x))
        heard: list[Tensor] = []
        for i in range(groups):
            group = graph.cont(graph.view_2d(entered, part, self._frames, 4 * wide, 4 * part * i))
            if i > 1:
                group = graph.add(group, heard[-1])
            heard.append(self._tdnn(f"{at}res2.{i - 1}", group, part, shape) if i else group)
        y = graph.relu(self._linear(f"{at}conv_pw2", self._joined(heard)))
        mean = graph.reshape_2d(graph.mean(self._turned(y)), wide, 1)
        squeezed = graph.relu(self._linear(f"{at}se_conv1", mean))
        return int(graph.add(x, graph.mul(y, graph.sigmoid(self._linear(f"{at}se_conv2", squeezed)))))

    def _pool(self, x: Tensor) -> Tensor:
        """x (frames, channels) -> mean and deviation, (1, 2 * channels)."""
        graph, w, wide = self._graph, self._w, self._meta.gathered
        over_time = self._turned(x)
        mean = graph.mean(over_time)
        deviation = self._root(graph.mean(graph.sqr(graph.sub(over_time, mean))))
        whole = graph.add(
            graph.mul_mat(w["a.asp_tdnn.mean"], graph.reshape_2d(mean, wide, 1)),
            graph.mul_mat(w["a.asp_tdnn.deviation"], graph.reshape_2d(deviation, wide, 1)),
        )
        seen = graph.add(graph.add(graph.mul_mat(w["a.asp_tdnn.frame"], x), whole), w["a.asp_tdnn.bias"])
        # Turned by the order of the factors. The bias is the same in every frame, so the softmax does not see it.
        weights = graph.soft_max_ext(graph.mul_mat(graph.tanh(graph.relu(seen)), w["a.asp_attn.weight"]), None, 1.0, 0.0)
        mean = graph.sum_rows(graph.mul(weights, over_time))
        deviation = self._root(graph.sum_rows(graph.mul(weights, graph.sqr(graph.sub(over_time, mean)))))
        return self._joined([graph.reshape_2d(mean, wide, 1), graph.reshape_2d(deviation, wide, 1)])

    def _tdnn(self, name: str, x: Tensor, wide: int, shape: tuple[int, int]) -> Tensor:
        graph, taps = self._graph, shape[0]
        if taps > 1:
            x = graph.reshape_2d(graph.get_rows(x, self._taps(shape)), wide * taps, self._frames)
        return int(graph.relu(self._linear(name, x)))

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return int(self._graph.add(self._graph.mul_mat(self._w[f"{name}.weight"], x), self._w[f"{name}.bias"]))

    def _taps(self, shape: tuple[int, int]) -> Tensor:
        """Row numbers (frames * taps,) of a convolution (taps, dilation), mirrored at both ends."""
        if shape not in self._rows:
            taps, dilation = shape
            self._rows[shape], rows = self._arena.array((self._frames * taps,), np.int32)
            places = np.arange(self._frames)[:, None] + (np.arange(taps) - taps // 2) * dilation
            last = self._frames - 1
            rows[:] = (last - np.abs(last - np.abs(places))).reshape(-1)
        return self._rows[shape]

    def _joined(self, parts: list[Tensor]) -> Tensor:
        return reduce(lambda left, right: int(self._graph.concat(left, right, 0)), parts)

    def _turned(self, x: Tensor) -> Tensor:
        return int(self._graph.cont(self._graph.transpose(x)))

    def _root(self, variance: Tensor) -> Tensor:
        return int(self._graph.sqrt(self._graph.clamp(variance, _LEAST_VARIANCE, math.inf)))
