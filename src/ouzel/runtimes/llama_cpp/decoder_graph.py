"""The codec decoder's operators over ggml, for a fixed number of new frames; signals are (time, channels), channels contiguous.

In that form a transposed convolution is one matrix product whose result is the upsampled signal, and a convolution is a product
with the columns of its taps side by side. What a layer needs of the past lies in front of the new columns of its input
(`Net.inputs`): the caller puts it there before a run and takes the last columns away after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ouzel.runtimes.llama_cpp.ggml import Arena, Graph, Tensor

Floats = NDArray[np.float32]

KERNEL = 7
DILATIONS = (1, 3, 9)
_NEOX = 2  # ggml's name for rotating the two halves of a head against each other
_NORM_EPSILON = 1e-6  # of the layer norm, fixed by the architecture
_NODES = 4096


@dataclass(frozen=True, slots=True)
class Input:
    """A layer's input: `past` columns in front of the new ones, `rate` a frame, in memory that all graphs share.

    array: (past + most new columns, channels). tensor: the same; its shape seems larger (see `Arena.array`).
    """

    tensor: Tensor
    array: Floats
    past: int
    rate: int

    @property
    def channels(self) -> int:
        return int(self.array.shape[1])


class DecoderGraph:
    """One graph; `run` it with `inputs["pre_conv"]` holding the quantiser's rows and `mask` saying which are seen."""

    def __init__(self, net: Net, frames: int) -> None:
        self._net, self._graph, self.frames = net, Graph(net.arena, _NODES), frames
        self._w = net.weights
        self._build()
        self._graph.finish()

    def run(self) -> Floats:
        """Samples float32 (frames * samples_per_frame,), a view that the next run of any graph overwrites."""
        self._graph.run()
        return self._net.samples[: self.frames * self._net.samples_per_frame]

    def _build(self) -> None:
        graph, net, columns = self._graph, self._net, self.frames
        x = self._conv("pre_conv", columns, 1, None)
        x = self._linear(x, "tfm.in_proj")
        for i in range(net.layers):
            x = self._layer(i, x)
        x = self._linear(graph.normed(x, self._w["tfm.output_norm.weight"], net.epsilon), "tfm.out_proj")
        for i, ratio in enumerate(net.ratios):
            x = self._linear(x, f"up.blk.{i}.conv")
            columns *= ratio
            x = graph.reshape_2d(x, net.latent, columns)
            x = self._convnext(i, x, columns)
        x = self._conv("dac.entry", columns, 1, x)
        for i, rate in enumerate(net.rates):
            x = self._snake(x, f"dac.blk.{i}.snake")
            x = self._conv(f"dac.blk.{i}.conv", columns, 1, x)
            columns *= rate
            x = graph.reshape_2d(x, net.channels >> (i + 1), columns)
            for j in net.units[i]:
                at = f"dac.blk.{i}.res.{j}."
                y = self._conv(f"{at}conv1", columns, DILATIONS[j], self._snake(x, f"{at}act1"))
                x = graph.add(x, self._linear(self._snake(y, f"{at}act2"), f"{at}conv2"))
        x = self._conv("dac.post_conv", columns, 1, self._snake(x, "dac.post_snake"))
        graph.store(x, graph.view_2d(net.samples_tensor, 1, columns, 4, 0))

    def _linear(self, x: Tensor, name: str) -> Tensor:
        y = self._graph.mul_mat(self._w[f"{name}.weight"], x)
        bias = self._w.get(f"{name}.bias")
        return int(y if bias is None else self._graph.add(y, bias))

    def _conv(self, name: str, columns: int, dilation: int, x: Tensor | None) -> Tensor:
        """The convolution `name` of its input's `columns` new columns, which are those of x, or are there already."""
        graph, given = self._graph, self._net.inputs[name]
        wide = given.channels
        row = 4 * wide
        if x is not None:
            graph.store(x, graph.view_2d(given.tensor, wide, columns, row, row * given.past))
        taps = given.past // dilation + 1
        side = graph.view_3d(given.tensor, wide, taps, columns, row * dilation, row, 0)
        return self._linear(graph.reshape_2d(graph.cont(side), wide * taps, columns), name)

    def _snake(self, x: Tensor, name: str) -> Tensor:
        graph, scale = self._graph, self._w.get(f"{name}.alpha")
        sine = graph.sin(x if scale is None else graph.mul(x, scale))
        return int(graph.add(x, graph.mul(graph.sqr(sine), self._w[f"{name}.beta"])))

    def _convnext(self, index: int, x: Tensor, columns: int) -> Tensor:
        graph, at = self._graph, f"up.blk.{index}."
        given = self._net.inputs[f"{at}dwconv"]
        row = 4 * given.channels
        graph.store(x, graph.view_2d(given.tensor, given.channels, columns, row, row * given.past))
        y = self._w[f"{at}dwconv.bias"]
        for tap in range(KERNEL):
            weight = graph.view_1d(self._w[f"{at}dwconv.weight"], given.channels, row * tap)
            part = graph.mul(graph.view_2d(given.tensor, given.channels, columns, row, row * tap), weight)
            y = graph.add(part, y)
        y = graph.norm(y, _NORM_EPSILON)
        y = graph.add(graph.mul(y, self._w[f"{at}norm.weight"]), self._w[f"{at}norm.bias"])
        y = self._linear(graph.gelu_erf(self._linear(y, f"{at}pw1")), f"{at}pw2")
        return int(graph.add(x, y))

    def _layer(self, index: int, x: Tensor) -> Tensor:
        """x (frames, hidden); keys and values are the new columns of their inputs, keys not yet rotated."""
        graph, net, n, at = self._graph, self._net, self.frames, f"tfm.blk.{index}."
        keys, values = net.inputs[f"{at}keys"], net.inputs[f"{at}values"]
        width, past, row = net.head_dim, keys.past, 4 * keys.channels
        h = graph.normed(x, self._w[f"{at}ln1.weight"], net.epsilon)
        for name, kept in (("attn_k", keys), ("attn_v", values)):
            new = graph.mul_mat(self._w[f"{at}{name}.weight"], h)
            graph.store(new, graph.view_2d(kept.tensor, kept.channels, n, row, row * past))

        def turned(y: Tensor, first: int, count: int) -> Tensor:
            at = graph.view_1d(net.positions, count, 4 * first)
            y = graph.rope_ext(y, at, None, width, _NEOX, 0, net.theta, 1.0, 0.0, 1.0, 0.0, 0.0)
            return int(graph.permute(y, 0, 2, 1, 3))

        def heads(kept: Input) -> Tensor:
            return int(graph.view_3d(kept.tensor, width, net.kv_heads, past + n, 4 * width, row, 0))

        query = turned(graph.reshape_3d(graph.mul_mat(self._w[f"{at}attn_q.weight"], h), width, net.heads, n), past, n)
        scores = graph.mul_mat(turned(heads(keys), 0, past + n), query)
        mask = graph.view_2d(net.mask_tensor, past + n, n, 4 * (past + n), 0)
        scores = graph.soft_max_ext(scores, mask, width**-0.5, 0.0)
        mixed = graph.mul_mat(graph.cont(graph.permute(heads(values), 1, 2, 0, 3)), scores)
        mixed = graph.reshape_2d(graph.cont(graph.permute(mixed, 0, 2, 1, 3)), width * net.heads, n)
        x = graph.add(x, self._linear(mixed, f"{at}attn_out"))
        h = graph.normed(x, self._w[f"{at}ln2.weight"], net.epsilon)
        inner = graph.swiglu_split(self._linear(h, f"{at}ffn_gate"), self._linear(h, f"{at}ffn_up"))
        return int(graph.add(x, self._linear(inner, f"{at}ffn_down")))


@dataclass(slots=True)
class Net:
    """What all graphs of a decoder share: weights by name (below "a.gen.wav."), layers' inputs, and the sizes."""

    arena: Arena
    weights: Mapping[str, Tensor]
    inputs: Mapping[str, Input]
    positions: Tensor  # int32 0, 1, ..
    mask_tensor: Tensor
    mask: Floats  # flat; (frames, past + frames) of the run: 0 for a frame that is seen, else minus infinity
    samples_tensor: Tensor
    samples: Floats
    samples_per_frame: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    epsilon: float
    theta: float
    latent: int
    channels: int
    ratios: tuple[int, ...]
    rates: tuple[int, ...]
    units: tuple[tuple[int, ...], ...]
