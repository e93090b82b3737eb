"""From a torch network to an ONNX file with weights beside it: float32, packed for MatMulNBits, or small and expanded at load.

The network is traced with its parameters as graph inputs, so the graph stays small whatever the model's size; the weights then go
one by one into `<name>.data` (ONNX external data), each quantised once. Peak memory is the network plus one weight.
"""

from __future__ import annotations

import io
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ouzel.errors import MissingExtraError
from ouzel.runtimes.base import Progress
from ouzel.runtimes.onnxruntime.choice import append_choice
from ouzel.runtimes.onnxruntime.quantize import WeightFormat, quantize
from ouzel.runtimes.onnxruntime.storage import Storage, shorten
from ouzel.runtimes.onnxruntime.switch import switch, walk

OPSET = 17
IR_VERSION = 9  # what opset 17 needs, readable by every ONNX Runtime from 1.15 on
MICROSOFT = "com.microsoft"
_PAGE = 4096  # external tensors start on page boundaries, so that they can be mapped
_LINE = 64  # but not those that are read once to be expanded
_INLINE_BYTES = 1024  # smaller tensors stay in the graph, where constant folding and fusions look for them


def export(
    module: Any,
    path: Path,
    *,
    inputs: Sequence[str],
    outputs: Sequence[str],
    dynamic: Mapping[str, Mapping[int, str]],
    format: WeightFormat,
    progress: Callable[[float], None] = lambda fraction: None,
    rewrite: Callable[[Any], None] = lambda graph: None,
    storage: Storage | None = None,
) -> list[str]:
    """Write `module` (with `.example()`, its trace arguments) as `path` and `path` with suffix .data; their names, graph first.

    inputs, outputs: tensor names in the order of forward's arguments and results. dynamic: {name: {axis: symbol}}.
    format: of the two-dimensional parameters that are the right side of a matrix product; everything else stays float32,
    unless `storage` stores it smaller. rewrite: changes the traced graph before the weights are attached.
    """
    model = _trace(module, inputs, outputs, dynamic)
    rewrite(model.graph)
    parameters = dict(module.named_parameters())
    data = path.with_suffix(".data")
    with data.open("wb") as file:
        storage = storage or Storage("fp32")
        store = _Store(file, data.name, _PAGE if storage.plain else _LINE)
        _attach(model, parameters, store, format, storage, progress)
    if not storage.plain:
        shorten(model.graph)
    path.write_bytes(model.SerializeToString())
    return [path.name, data.name]


def _trace(module: Any, inputs: Sequence[str], outputs: Sequence[str], dynamic: Mapping[str, Mapping[int, str]]) -> Any:
    try:
        import onnx
        import torch
    except ImportError as error:
        raise MissingExtraError(f"Converting needs torch and onnx ({error}): pip install 'ouzel[convert]'.") from error
    buffer = io.BytesIO()
    with torch.inference_mode(), _silence():
        torch.onnx.export(
            module.eval(),
            module.example(),
            buffer,
            export_params=False,
            do_constant_folding=False,
            dynamo=False,  # the newer exporter has no symbolic for autograd functions and cannot leave the weights out
            opset_version=OPSET,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes={name: dict(axes) for name, axes in dynamic.items()},
        )
    model = onnx.load_from_string(buffer.getvalue())
    model.ir_version = IR_VERSION
    return model


@contextmanager
def _silence() -> Iterator[None]:
    """The tracer warns about its own age and about every custom operator; neither is news to the user."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


class _Store:
    """Appends tensors to the external data file and describes them as ONNX initializers."""

    def __init__(self, file: BinaryIO, location: str, alignment: int) -> None:
        self._file = file
        self._location = location
        self._alignment = alignment

    def add(self, name: str, values: NDArray[Any]) -> Any:
        import onnx

        values = np.ascontiguousarray(values)
        if values.nbytes < _INLINE_BYTES:
            return onnx.numpy_helper.from_array(values, name)
        self._file.write(b"\0" * (-self._file.tell() % self._alignment))
        tensor = onnx.TensorProto(name=name, data_type=onnx.helper.np_dtype_to_tensor_dtype(values.dtype), dims=values.shape)
        tensor.data_location = onnx.TensorProto.EXTERNAL
        where = {"location": self._location, "offset": self._file.tell(), "length": values.nbytes}
        for key, value in where.items():
            tensor.external_data.add(key=key, value=str(value))
        self._file.write(values.data)
        return tensor


def _attach(
    model: Any,
    parameters: Mapping[str, Any],
    store: _Store,
    format: WeightFormat,
    storage: Storage,
    progress: Callable[[float], None],
) -> None:
    """Turn the graph inputs that are parameters into initializers, matrix products with them into MatMulNBits."""
    graph = model.graph
    named = [value.name for value in graph.input if value.name in parameters]
    # ONNX Runtime packs a weight for its kernel only when it belongs to the graph of the node that uses it.
    homes: dict[str, Any] = {}
    products: dict[str, list[Any]] = {}
    for home, node in walk(graph):
        homes |= {name: home for name in node.input if name in parameters}
        if format.bits and node.op_type == "MatMul" and node.input[1] in parameters:
            products.setdefault(node.input[1], []).append(node)
    small = storage.weights(node for _, node in walk(graph))
    total, done = sum(parameters[name].numel() for name in named), 0
    for name in named:
        values: NDArray[np.float32] = parameters[name].detach().numpy()
        initializers = homes[name].initializer
        if name in products:
            bits = format.bits_of(name)
            packed, scales = quantize(values.T, bits, format.block)
            initializers.append(store.add(f"{name}.q", packed))
            initializers.append(store.add(f"{name}.scales", scales))
            for node in products[name]:
                _to_nbits(node, name, values.shape, bits, format)
        elif name in small:
            storage.add(name, values, lambda part, array: graph.initializer.append(store.add(part, array)))
        else:
            initializers.append(store.add(name, values))
        done += values.size
        progress(done / total)
    nodes = [*storage.nodes, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    kept = [value for value in graph.input if value.name not in parameters]
    del graph.input[:]
    graph.input.extend(kept)
    used = any(node.domain == MICROSOFT for _, node in walk(graph))
    if used and not any(opset.domain == MICROSOFT for opset in model.opset_import):
        model.opset_import.add(domain=MICROSOFT, version=1)


def _to_nbits(node: Any, name: str, shape: tuple[int, ...], bits: int, format: WeightFormat) -> None:
    import onnx

    node.op_type, node.domain = "MatMulNBits", MICROSOFT
    activations = node.input[0]
    del node.input[:]
    node.input.extend([activations, f"{name}.q", f"{name}.scales"])
    fields = {"K": shape[0], "N": shape[1], "bits": bits, "block_size": format.block}
    for key, value in {**fields, "accuracy_level": format.accuracy_level}.items():
        node.attribute.append(onnx.helper.make_attribute(key, value))


def export_talker(talker: Any, folder: Path, format: WeightFormat, progress: Callable[[float], None]) -> list[str]:
    """talker.onnx: rows (1, n, hidden), length (1,) int32, caches -> hidden, logits, caches."""
    caches = cache_names(talker.spec["layers"])
    dynamic: dict[str, dict[int, str]] = {"rows": {1: "n"}}
    dynamic |= {name: {2: "capacity"} for past, present in caches for name in (past, present)}
    return export(
        talker,
        folder / "talker.onnx",
        inputs=["rows", "length", *(past for past, _ in caches)],
        outputs=["hidden", "logits", *(present for _, present in caches)],
        dynamic=dynamic,
        format=format,
        progress=progress,
    )


def export_predictor(predictor: Any, folder: Path, format: WeightFormat, progress: Callable[[float], None]) -> list[str]:
    """predictor.onnx: one sub-step, from rows to the sampled code and its embedding row.

    rows (1, n, input size), length (1,) int32, caches, head (1,) int32 and the inputs of `append_choice` -> its outputs, caches.
    """
    import onnx

    caches = cache_names(predictor.spec["layers"])
    heads = [f"logits.{q}" for q in range(1, predictor.spec["groups"])]

    def choose_head(graph: Any) -> None:
        by_output = {node.output[0]: node for node in graph.node}
        switch(graph, [by_output[name] for name in heads], "head", "logits")
        graph.input.append(onnx.helper.make_tensor_value_info("head", onnx.TensorProto.INT32, [1]))
        append_choice(graph, width=predictor.spec["input_size"])

    return export(
        predictor,
        folder / "predictor.onnx",
        inputs=["rows", "length", *(past for past, _ in caches)],
        outputs=[*heads, *(present for _, present in caches)],
        dynamic={"rows": {1: "n"}},
        format=format,
        progress=progress,
        rewrite=choose_head,
    )


def cache_names(layers: int) -> list[tuple[str, str]]:
    """(input, output) names of the key/value buffers, in the order of the network's arguments."""
    return [(f"past.{i}.{kind}", f"present.{i}.{kind}") for i in range(layers) for kind in ("key", "value")]


def part(progress: Progress, label: str, start: float, stop: float) -> Callable[[float], None]:
    """A fraction 0..1 of one step as the fraction start..stop of the whole."""
    return lambda fraction: progress(label, start + (stop - start) * fraction)
