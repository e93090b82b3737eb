"""Computes one of several nodes in an ONNX graph: a tree of If operators, so that the others cost nothing.

ONNX Runtime runs every node of a graph whatever outputs are asked for, and a session for each of 15 heads would mean 15
thread pools.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


def switch(graph: Any, nodes: Sequence[Any], index: str, output: str) -> None:
    """Move `nodes` (one float output each, of one shape) under If operators; nodes[i] runs when the int32 (1,) `index` is i.

    The graph's outputs for these nodes are replaced by the single `output`.
    """
    import onnx

    names = [node.output[0] for node in nodes]
    kept = [value for value in graph.output if value.name not in names]
    shape = next(value for value in graph.output if value.name == names[0]).type
    others = [node for node in graph.node if not any(name in node.output for name in names)]
    tree = _branch(list(nodes), 0, index, onnx.ValueInfoProto(name=output, type=shape))
    del graph.node[:]
    graph.node.extend([*others, *tree])
    del graph.output[:]
    graph.output.extend([onnx.ValueInfoProto(name=output, type=shape), *kept])


def walk(graph: Any) -> Iterator[tuple[Any, Any]]:
    """(graph, node) for all nodes of a graph and of the graphs inside it."""
    for node in graph.node:
        yield graph, node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from walk(attribute.g)


def _branch(nodes: list[Any], first: int, index: str, output: Any) -> list[Any]:
    """Nodes that give `output` (a ValueInfoProto) from one of `nodes`, whose numbers start with `first`."""
    import onnx
    from onnx import TensorProto, helper

    if len(nodes) == 1:
        leaf = nodes[0]
        leaf.output[0] = output.name
        return [leaf]
    half = len(nodes) // 2
    limit, below = f"{output.name}.limit.{first + half}", f"{output.name}.below.{first + half}"
    constant = helper.make_node("Constant", [], [limit], value=helper.make_tensor(limit, TensorProto.INT32, [1], [first + half]))
    less = helper.make_node("Less", [index, limit], [below])
    graphs = {}
    for key, chosen, start in (("then_branch", nodes[:half], first), ("else_branch", nodes[half:], first + half)):
        inner = onnx.ValueInfoProto(name=f"{output.name}.{start}.{start + len(chosen) - 1}", type=output.type)
        graphs[key] = helper.make_graph(_branch(chosen, start, index, inner), inner.name, [], [inner])
    return [constant, less, helper.make_node("If", [below], [output.name], **graphs)]
