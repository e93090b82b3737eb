"""Talker and code predictor as ONNX graphs of standard operators, for runtimes that do not know GroupQueryAttention.

The operator is replaced by what it computes, over key/value buffers that the graph only reads: it gives back the new rows, and
the caller writes them into its buffers. So no step copies the past, and no shape changes between steps.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ouzel.runtimes.onnxruntime.export import cache_names, export
from ouzel.runtimes.onnxruntime.quantize import FORMATS

ROWS, POSITIONS, STORED, CAUSAL = "rows", "positions", "stored", "causal"
HIDDEN, LOGITS, FRESH = "hidden", "logits", "fresh"
HIDE = -1e9
"""What the masks add to the score of a row that must not be seen; its weight then is exactly 0."""

Report = Callable[[float], None]


def inputs(layers: int) -> list[str]:
    """Names of the inputs of both graphs.

    rows float32 (1, n, input size); positions int32 (n,), theirs in the utterance; stored float32 (1, capacity), 0 where the
    buffers hold a row and HIDE elsewhere; causal float32 (heads / kv_heads * n, n), 0 on and below the diagonal of each n lines
    and HIDE above; then keys and values of each layer, float32 (kv_heads, capacity, head_dim), all of them finite.
    """
    return [ROWS, POSITIONS, STORED, CAUSAL, *(past for past, _ in cache_names(layers))]


def export_plain_talker(talker: Any, folder: Path, progress: Report) -> list[str]:
    """talker.onnx, float32: the `inputs` -> hidden (1, hidden), logits (1, vocab), fresh (2 * layers, kv_heads, n, head_dim).

    hidden and logits are of the last row; fresh holds what to store of the new ones, keys and values of each layer in turn.
    """
    return _export(talker, folder / "talker.onnx", [HIDDEN, LOGITS], lambda graph: None, progress)


def export_plain_predictor(predictor: Any, folder: Path, progress: Report) -> list[str]:
    """predictor.onnx: as `export_plain_talker`, with hidden (1, hidden) alone; and head.<q>.onnx: hidden -> logits (1, vocab).

    Returns the names of all files, the graph predictor.onnx first and those of head.1, head.2 .. behind it.
    """
    heads = [f"{LOGITS}.{q}" for q in range(1, predictor.spec["groups"])]

    def behead(graph: Any) -> None:
        products = [node for node in graph.node if node.output[0] in heads]
        hidden = {node.input[0] for node in products}.pop()
        weights = {node.input[1] for node in products}
        _keep(graph.node, [node for node in graph.node if node.output[0] not in heads])
        _keep(graph.input, [value for value in graph.input if value.name not in weights])
        value = next(value for value in graph.output if value.name == heads[0])
        value.name = HIDDEN
        value.type.tensor_type.shape.dim[1].dim_value = predictor.config.hidden_size
        _keep(graph.output, [value for value in graph.output if value.name not in heads])
        for node in graph.node:
            node.output[:] = [HIDDEN if name == hidden else name for name in node.output]

    names = _export(predictor, folder / "predictor.onnx", heads, behead, lambda fraction: progress(0.8 * fraction))
    for q, head in enumerate(predictor.heads, 1):
        names += _export_head(head, folder / f"head.{q}.onnx")
        progress(0.8 + 0.2 * q / len(heads))
    return names


def _export(network: Any, path: Path, results: list[str], change: Callable[[Any], None], progress: Report) -> list[str]:
    caches = cache_names(network.spec["layers"])

    def rewrite(graph: Any) -> None:
        change(graph)
        _plain_attention(graph, network.spec)

    dynamic: dict[str, dict[int, str]] = {ROWS: {1: "n"}}
    dynamic |= {name: {2: "capacity"} for pair in caches for name in pair}
    return export(
        network,
        path,
        inputs=[ROWS, "length", *(past for past, _ in caches)],
        outputs=[*results, *(present for _, present in caches)],
        dynamic=dynamic,
        format=FORMATS["fp32"],
        progress=progress,
        rewrite=rewrite,
    )


def _export_head(head: Any, path: Path) -> list[str]:
    import onnx
    from onnx import TensorProto, helper

    from ouzel.runtimes.onnxruntime.export import IR_VERSION, OPSET

    weight = head.weight.detach().numpy()
    graph = helper.make_graph(
        [helper.make_node("MatMul", [HIDDEN, "weight"], [LOGITS])],
        path.stem,
        [helper.make_tensor_value_info(HIDDEN, TensorProto.FLOAT, [1, weight.shape[0]])],
        [helper.make_tensor_value_info(LOGITS, TensorProto.FLOAT, [1, weight.shape[1]])],
        [onnx.numpy_helper.from_array(np.ascontiguousarray(weight), "weight")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    path.write_bytes(model.SerializeToString())
    return [path.name]


def _plain_attention(graph: Any, spec: Any) -> None:
    """Replace every GroupQueryAttention; see `inputs` and `export_plain_talker` for what comes in and goes out instead."""
    from onnx import TensorProto, helper

    heads, width = spec["kv_heads"], spec["head_dim"]
    caches = cache_names(spec["layers"])
    new = _Nodes(heads, width)
    fresh: list[str] = []
    for node in graph.node:
        if node.op_type == "GroupQueryAttention":
            fresh += new.attention(node)
        else:
            new.nodes.append(node)
    new.add("Concat", fresh, FRESH, axis=0)
    _keep(graph.output, [value for value in graph.output if value.name not in {present for _, present in caches}])
    graph.output.append(helper.make_tensor_value_info(FRESH, TensorProto.FLOAT, [2 * spec["layers"], heads, "n", width]))
    # Nothing reads the length any more, nor what was computed of it.
    wanted, kept = {value.name for value in graph.output}, []
    for node in reversed(new.nodes):
        if wanted.intersection(node.output):
            kept.append(node)
            wanted.update(node.input)
    _keep(graph.node, kept[::-1])
    graph.initializer.extend(new.constants)
    replaced = {"length", *(past for past, _ in caches)}
    rows, *parameters = [value for value in graph.input if value.name not in replaced]
    shapes: list[tuple[str, int, list[Any]]] = [
        (POSITIONS, TensorProto.INT32, ["n"]),
        (STORED, TensorProto.FLOAT, [1, "capacity"]),
        (CAUSAL, TensorProto.FLOAT, ["queries", "n"]),
        *((past, TensorProto.FLOAT, [heads, "capacity", width]) for past, _ in caches),
    ]
    _keep(graph.input, [rows, *(helper.make_tensor_value_info(*shape) for shape in shapes), *parameters])
    del graph.value_info[:]


class _Nodes:
    """The nodes of the new graph as they come."""

    def __init__(self, kv_heads: int, width: int) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._kv_heads, self._width = kv_heads, width
        self._known: set[str] = set()

    def add(self, kind: str, given: list[str], *results: str, **attributes: Any) -> str:
        """Append a node; the name of its first result."""
        from onnx import helper

        self.nodes.append(helper.make_node(kind, given, list(results), **attributes))
        return results[0]

    def attention(self, node: Any) -> list[str]:
        """What the operator `node` does. Names of the new keys and values, float32 (1, kv_heads, n, head_dim) each."""
        q, k, v, keys, values, _, _, cos, sin = node.input
        at, kv, width = keys.removesuffix("key"), self._kv_heads, self._width
        share = next(attribute.i for attribute in node.attribute if attribute.name == "num_heads") // kv
        turn = [self._once("Gather", [table, POSITIONS], f"turn.{table}", axis=0) for table in (cos, sin)]
        capacity = self._once("Shape", [STORED], "capacity", start=1)
        # Queries that read the same keys lie together: (kv_heads, share * n, head_dim).
        q = self.add("Reshape", [q, self._numbers(-1, kv, share, width)], f"{at}q.heads")
        q = self._rotate(self.add("Transpose", [q], f"{at}q", perm=[1, 2, 0, 3]), turn, f"{at}q.turned")
        q = self.add("Reshape", [q, self._numbers(kv, -1, width)], f"{at}q.rows")
        k, v = (
            self.add(
                "Transpose",
                [self.add("Reshape", [rows, self._numbers(-1, kv, width)], f"{at}{name}.heads")],
                f"{at}{name}",
                perm=[1, 0, 2],
            )
            for name, rows in (("k", k), ("v", v))
        )
        k = self._rotate(k, turn, f"{at}k.turned")
        old, new = (
            self.add("Add", [self.add("MatMul", [q, self._swapped(rows)], f"{rows}.scores"), mask], f"{rows}.masked")
            for rows, mask in ((keys, STORED), (k, CAUSAL))
        )
        weights = self.add("Softmax", [self.add("Concat", [old, new], f"{at}scores", axis=-1)], f"{at}weights", axis=-1)
        last, start, end = self._numbers(2), self._numbers(0), self._numbers(1 << 30)
        parts = [
            self.add("MatMul", [self.add("Slice", [weights, a, b, last], f"{rows}.weights"), rows], f"{rows}.part")
            for rows, a, b in ((values, start, capacity), (v, capacity, end))
        ]
        out = self.add("Reshape", [self.add("Add", parts, f"{at}sum"), self._numbers(kv, share, -1, width)], f"{at}sum.heads")
        out = self.add("Transpose", [out], f"{at}sum.rows", perm=[2, 0, 1, 3])
        self.add("Reshape", [out, self._numbers(1, -1, kv * share * width)], node.output[0])
        first = self._numbers(0)
        return [self.add("Unsqueeze", [rows, first], f"{rows}.fresh") for rows in (k, v)]

    def _once(self, kind: str, given: list[str], result: str, **attributes: Any) -> str:
        if result not in self._known:
            self._known.add(result)
            self.add(kind, given, result, **attributes)
        return result

    def _swapped(self, rows: str) -> str:
        return self.add("Transpose", [rows], f"{rows}.swapped", perm=[0, 2, 1])

    def _numbers(self, *values: int) -> str:
        import onnx

        name = "numbers." + ".".join(map(str, values))
        if name not in self._known:
            self._known.add(name)
            self.constants.append(onnx.numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def _rotate(self, rows: str, turn: list[str], result: str) -> str:
        """rows (.., n, head_dim) turned by the angles of their positions."""
        a, b = f"{rows}.a", f"{rows}.b"
        self.add("Split", [rows], a, b, axis=-1)
        cos, sin = turn
        for half, other, combine in ((a, b, "Sub"), (b, a, "Add")):
            products = [
                self.add("Mul", [part, factor], f"{half}.{name}")
                for part, factor, name in ((half, cos, "cos"), (other, sin, "sin"))
            ]
            self.add(combine, products, f"{half}.turned")
        return self.add("Concat", [f"{a}.turned", f"{b}.turned"], result, axis=-1)


def _keep(field: Any, items: list[Any]) -> None:
    """Make `items` the whole of a repeated field; they may be its own."""
    items = list(items)
    del field[:]
    field.extend(items)
