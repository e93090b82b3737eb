"""Weights that are small in the file and float32 in memory.

A weight becomes a tensor of 4, 8 or 16 bits, its scales, and the few nodes that multiply them. All of that is constant, so ONNX
Runtime computes it once, when it loads the graph, and every kernel gets the float32 weight that it would have got.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import choose
from ouzel.runtimes.onnxruntime.quantize import blockwise

STORAGES = ("fp32", "fp16", "int8")
_BLOCK = 64  # weights that share a scale; where blocks do not fill what is summed over, all of that shares one
_SMALL = 1 << 12  # weights of fewer values make up a thousandth of a network, and keep 16 bits
_PAIRS = "pairs"  # the tensor that says which two steps a byte holds

Array = NDArray[Any]
Floats = NDArray[np.float32]
Keep = Callable[[str, Array], None]
Factors = Sequence[tuple[Floats, Floats]]
"""A table as blocks of rows, each the product of two matrices."""


@dataclass(slots=True)
class Storage:
    """How the weights of one graph are stored; UsageError for a `name` that is none of STORAGES.

    factors: parameters that are smaller as products. bits: 4 or 8, of the weights that "int8" does not keep in 16.
    `nodes` gathers what expands the weights, in an order that a graph may have.
    """

    name: str
    factors: Mapping[str, Factors] = field(default_factory=dict)
    bits: Mapping[str, int] = field(default_factory=dict)
    nodes: list[Any] = field(default_factory=list)
    _known: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.name not in STORAGES:
            raise choose("decoder weights", self.name, STORAGES)

    @property
    def plain(self) -> bool:
        """Every weight is stored as it is."""
        return self.name == "fp32"

    def weights(self, nodes: Iterable[Any]) -> set[str]:
        """Names that are stored small: what convolutions and matrix products multiply by, and the tables of `factors`."""
        if self.plain:
            return set()
        return {node.input[1] for node in nodes if node.op_type in ("MatMul", "Conv")} | set(self.factors)

    def add(self, name: str, values: Floats, keep: Keep) -> None:
        """Store weight `name` by calling keep(tensor name, values), and make the nodes that compute `name` of it.

        values: (in, out) of a matrix product or (out, in, 1, taps) of a convolution.
        """
        if name in self.factors:
            self._add_factors(name, keep)
        elif name in self.bits:
            self._add_steps(name, Steps.of(values, self.bits[name]), values.shape, keep)
        else:
            self._add_half(name, values, keep)

    def _add_half(self, name: str, values: Floats, keep: Keep) -> None:
        unit = _unit(values)
        keep(f"{name}.half", (values / unit).astype(np.float16))
        keep(f"{name}.unit", unit)
        self._node("Cast", [f"{name}.half"], f"{name}.wide", to=1)
        self._node("Mul", [f"{name}.wide", f"{name}.unit"], name)

    def _add_steps(self, name: str, small: Steps, shape: Sequence[int], keep: Keep) -> None:
        keep(f"{name}.q", small.packed() if small.bits == 4 else small.steps)
        keep(f"{name}.scales", small.scales)
        keep(f"{name}.unit", small.unit)
        keep(f"{name}.shape", np.array(shape, np.int64))
        if small.bits == 4:
            if _PAIRS not in self._known.values():
                self._known[id(keep)] = _PAIRS
                keep(_PAIRS, _pairs())
            keep(f"{name}.blocked", np.array(small.steps.shape, np.int64))
            self._node("Cast", [f"{name}.q"], f"{name}.bytes", to=6)
            self._node("Gather", [_PAIRS, f"{name}.bytes"], f"{name}.pairs")
            self._node("Reshape", [f"{name}.pairs", f"{name}.blocked"], f"{name}.steps")
        else:
            self._node("Cast", [f"{name}.q"], f"{name}.steps", to=1)
        self._node("Cast", [f"{name}.scales"], f"{name}.wide", to=1)
        self._node("Mul", [f"{name}.wide", f"{name}.unit"], f"{name}.step")
        self._node("Mul", [f"{name}.steps", f"{name}.step"], f"{name}.blocks")
        self._node("Reshape", [f"{name}.blocks", f"{name}.shape"], name)

    def _add_factors(self, name: str, keep: Keep) -> None:
        parts = [f"{name}.{i}" for i in range(len(self.factors[name]))]
        for part, pair in zip(parts, self.factors[name], strict=True):
            sides = [self._known.setdefault(id(factor), f"{part}.{side}") for side, factor in zip("ab", pair, strict=True)]
            for side, factor in zip(sides, pair, strict=True):
                if side.startswith(f"{part}."):  # else another block has it already
                    self._add_half(side, factor, keep)
            self._node("MatMul", sides, part)
        self._node("Concat", parts, name, axis=0)

    def _node(self, operator: str, inputs: Sequence[str], output: str, **attributes: int) -> None:
        import onnx

        self.nodes.append(onnx.helper.make_node(operator, inputs, [output], **attributes))


@dataclass(frozen=True, slots=True)
class Steps:
    """A weight as steps * (scales * unit): int8, float16 with axis 1 of length 1, float32 ().

    Axis 1 holds the values that share a scale. They lie along what is summed over: steps are (in / block, block, out) for the
    weight of a matrix product, (out * blocks, block) for that of a convolution.
    """

    bits: int
    steps: NDArray[np.int8]
    scales: NDArray[np.float16]
    unit: Floats

    @classmethod
    def of(cls, values: Floats, bits: int) -> Steps:
        """values: (in, out) or (out, in, 1, taps)."""
        blocks = values.reshape(_blocked(values.shape))
        codes, scales = blockwise(np.moveaxis(blocks, 1, -1), bits)
        scales = np.expand_dims(scales, 1)
        unit = _unit(scales)
        steps = np.moveaxis(codes, -1, 1).astype(np.int16) - (1 << (bits - 1))
        return cls(bits, steps.astype(np.int8), (scales / unit).astype(np.float16), unit)

    def packed(self) -> NDArray[np.uint8]:
        """Steps of 4 bits, two a byte, neighbours on the last axis: the first in the low half."""
        codes = (self.steps + 8).astype(np.uint8)
        return np.bitwise_or(codes[..., 0::2], np.left_shift(codes[..., 1::2], np.uint8(4)))

    def expanded(self, shape: Sequence[int]) -> Floats:
        """The weight, of its own shape again, as the graph computes it."""
        step: Floats = self.scales.astype(np.float32) * self.unit
        return (self.steps.astype(np.float32) * step).reshape(shape)


def choices(shape: Sequence[int]) -> tuple[int, ...]:
    """The numbers of bits, most first, besides 16, in which "int8" can store a weight of this shape."""
    if math.prod(shape) < _SMALL:
        return ()
    return (8, 4) if _blocked(shape)[-1] % 2 == 0 else (8,)


def shorten(graph: Any) -> None:
    """Give what nodes compute short names, and nodes none: the tracer's are half of the bytes of a graph without subgraphs."""
    kept = {value.name for value in (*graph.input, *graph.output)} | {tensor.name for tensor in graph.initializer}
    short: dict[str, str] = {}
    for node in graph.node:
        node.name = ""
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                if name and name not in kept:
                    names[i] = short.setdefault(name, f"_{len(short):x}")
    del graph.value_info[:]


def _pairs() -> Floats:
    codes = np.arange(256)
    return np.stack((codes & 15, codes >> 4), -1).astype(np.float32) - 8


def _blocked(shape: Sequence[int]) -> tuple[int, ...]:
    if len(shape) == 2:
        return shape[0] // _block(shape[0]), _block(shape[0]), shape[1]
    size = math.prod(shape[1:])
    return math.prod(shape) // _block(size), _block(size)


def _block(size: int) -> int:
    return _BLOCK if size % _BLOCK == 0 else size


def _unit(values: Floats) -> Floats:
    """The power of two, float32 (), that brings the largest magnitude to 1..2: float16 loses precision below 2^-14."""
    largest = float(np.abs(values).max(initial=0.0))
    return np.array(2.0 ** (math.frexp(largest)[1] - 1) if largest else 1.0, np.float32)
