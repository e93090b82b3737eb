"""A dynamically quantised ONNX graph as the float32 graph of the same weights."""

from __future__ import annotations

from typing import Any

import numpy as np

_CHAIN = 5  # nodes at most between a quantised bias and the Add that uses it


def as_float(model: Any) -> None:
    """In place: ConvInteger and MatMulInteger become Conv and MatMul on dequantised weights; the activations' scales become 1."""
    from onnx import helper, numpy_helper

    graph = model.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    dynamic = {node.output[0]: node for node in graph.node if node.op_type == "DynamicQuantizeLinear"}
    scales = {node.output[1] for node in dynamic.values()}
    graph.initializer.append(numpy_helper.from_array(np.array(1.0, np.float32), "one"))
    made: set[str] = set()

    def value(name: str, zero: str) -> str:
        if name in dynamic:
            return str(dynamic[name].input[0])
        new = f"{name}_float"
        if new not in made:
            made.add(new)
            array = numpy_helper.to_array(weights[name]).astype(np.int32)
            point = numpy_helper.to_array(weights[zero]).astype(np.int32) if zero else np.zeros((), np.int32)
            if point.size > 1 and array.ndim > 2:
                point = point.reshape((-1,) + (1,) * (array.ndim - 1))
            elif point.size == 1:
                point = point.reshape(())
            graph.initializer.append(numpy_helper.from_array((array - point).astype(np.float32), new))
        return new

    nodes = []
    for node in graph.node:
        if node.op_type == "DynamicQuantizeLinear":
            continue
        if node.op_type in ("ConvInteger", "MatMulInteger"):
            inputs = [*node.input, "", ""][:4]
            kind = "Conv" if node.op_type == "ConvInteger" else "MatMul"
            pair = [value(inputs[0], inputs[2]), value(inputs[1], inputs[3])]
            new = helper.make_node(kind, pair, list(node.output), name=node.name)
            new.attribute.extend(node.attribute)
            nodes.append(new)
            continue
        for i, name in enumerate(node.input):
            if name in scales:
                node.input[i] = "one"
        nodes.append(node)
    _float_biases(nodes)
    del graph.node[:]
    graph.node.extend(nodes)
    pruned(model)


def _float_biases(nodes: list[Any]) -> None:
    """A bias was rounded to integers of the product's scale; with a scale of 1 it must stay a float."""
    producer = {name: node for node in nodes for name in node.output}
    products = {node.output[0] for node in nodes if node.op_type in ("Conv", "MatMul")}
    for node in nodes:
        if node.op_type != "Add" or not any(name in products for name in node.input):
            continue
        for name in node.input:
            at = producer.get(name)
            for _ in range(_CHAIN):
                if at is None:
                    break
                if at.op_type == "Cast" and at.attribute[0].i in (6, 7):
                    at.attribute[0].i = 1
                elif at.op_type == "Floor":
                    at.op_type = "Identity"
                elif at.op_type not in ("Reshape", "Unsqueeze"):
                    break
                at = producer.get(at.input[0])


def pruned(model: Any) -> None:
    """In place: only what the outputs need."""
    graph = model.graph
    producer = {name: i for i, node in enumerate(graph.node) for name in node.output}
    wanted, kept = [output.name for output in graph.output], set()
    while wanted:
        at = producer.get(wanted.pop())
        if at is not None and at not in kept:
            kept.add(at)
            wanted += [name for name in graph.node[at].input if name]
    nodes = [node for i, node in enumerate(graph.node) if i in kept]
    used = {name for node in nodes for name in node.input}
    tensors = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.node[:], graph.initializer[:], graph.value_info[:]
    graph.node.extend(nodes)
    graph.initializer.extend(tensors)
