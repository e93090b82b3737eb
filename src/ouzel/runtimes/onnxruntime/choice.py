"""Draws a code inside the ONNX graph and looks up its embedding, so that a sub-step is one run and no Python.

The graph's counterpart of `ouzel.sampling.choose_residual`. It matters because a frame's weights sweep the caches: fifteen times
a dozen small numpy calls, each with cold code, cost several times the whole choice here. For the same reason there are few nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def append_choice(graph: Any, *, width: int) -> None:
    """Replace the output `logits` float (1, vocab) by a choice among them.

    More inputs: uniform float (1,) in [0, 1); sharpness float (1,), 1 / temperature; top_k int64 (1,), 1..vocab; table float
    (embeddings, width), those of all heads after one another; start int64 (1,), where the head's own begin.
    Outputs: code int64 (1, 1); row float (1, 1, width), its embedding; check float (1,), finite when all logits are.
    top_k 1 is the greedy choice: the lowest of the best codes. Exactly top_k codes stay; among equals the lower ids do.
    """
    from onnx import TensorProto, helper, numpy_helper

    def constant(name: str, values: NDArray[Any]) -> str:
        graph.initializer.append(numpy_helper.from_array(values, name))
        return name

    def node(kind: str, inputs: list[str], *outputs: str, **attributes: Any) -> None:
        graph.node.append(helper.make_node(kind, inputs, list(outputs), **attributes))

    axis = constant("choice.axis", np.array([1]))
    node("TopK", ["logits", "top_k"], "choice.top", "choice.codes", axis=1)
    node("Mul", ["choice.top", "sharpness"], "choice.scores")
    node("Softmax", ["choice.scores"], "choice.density", axis=1)
    node("CumSum", ["choice.density", axis], "choice.mass")
    node("LessOrEqual", ["choice.mass", "uniform"], "choice.below")
    node("Cast", ["choice.below"], "choice.counted", to=TensorProto.INT64)
    node("ReduceSum", ["choice.counted", axis], "choice.place", keepdims=1)
    # Rounding can leave the whole mass a little below a draw close to 1.
    node("Sub", ["top_k", constant("choice.one", np.array([1]))], "choice.last")
    node("Min", ["choice.place", "choice.last"], "choice.at")
    node("GatherElements", ["choice.codes", "choice.at"], "code", axis=1)
    node("Add", ["code", "start"], "choice.entry")
    node("Gather", ["table", "choice.entry"], "row", axis=0)
    node("ReduceSum", ["logits", axis], "check", keepdims=0)
    for name, kind, shape in (
        ("uniform", TensorProto.FLOAT, [1]),
        ("sharpness", TensorProto.FLOAT, [1]),
        ("top_k", TensorProto.INT64, [1]),
        ("table", TensorProto.FLOAT, ["embeddings", width]),
        ("start", TensorProto.INT64, [1]),
    ):
        graph.input.append(helper.make_tensor_value_info(name, kind, shape))
    kept = [value for value in graph.output if value.name != "logits"]
    del graph.output[:]
    graph.output.extend(
        [
            helper.make_tensor_value_info("code", TensorProto.INT64, [1, 1]),
            helper.make_tensor_value_info("row", TensorProto.FLOAT, [1, 1, width]),
            helper.make_tensor_value_info("check", TensorProto.FLOAT, [1]),
            *kept,
        ]
    )
