"""Networks as .pte files: traced, lowered for a backend, written."""

from __future__ import annotations

import contextlib
import copy
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ouzel.errors import MissingExtraError, OuzelError
from ouzel.runtimes.executorch.backends import Backend, first_line, partitioner
from ouzel.runtimes.executorch.caches import empty_caches
from ouzel.runtimes.executorch.decoder import DECODE
from ouzel.runtimes.executorch.library import EXTRA, executorch, installed
from ouzel.runtimes.executorch.predictor import BODY, FIRST_ROWS, head
from ouzel.runtimes.executorch.quantize import SCHEMES, quantize
from ouzel.runtimes.executorch.talker import FORWARD

MAX_ROWS = 32
MAX_NEW = 4
"""Rows of one talker call, frames of one decoder call, at most; longer ones run in pieces. The package holds Python's lock
during a call, so nothing else of the process runs meanwhile, the thread that plays included."""

Report = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Traced:
    """What becomes a method. inputs: to trace `module` with; those that vary are its named arguments, the others its *args.

    varying: of each named argument, the axis that is 1 to `largest` long.
    """

    module: Any
    inputs: Sequence[Any]
    varying: tuple[int, ...] = ()
    largest: int = 1


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """The exporter warns about its own parts and logs what it reads; neither is news to the user."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


@_silence()
def export_talker(talker: Any, path: Path, weights: str, target: Backend, progress: Report) -> dict[str, Any]:
    """The program of `talker` as `path`; its meta. One method: rows, positions, caches -> hidden, logits; caches in place."""
    torch = executorch().torch
    from ouzel.runtimes.executorch.transformer import Transformer

    spec: dict[str, Any] = talker.spec
    rows = min(MAX_ROWS, spec["max_positions"])
    module = Transformer(talker.stack, head=talker.head)
    quantize(module, weights)
    caches = empty_caches(torch, spec, spec["max_positions"])
    inputs = (torch.zeros(1, 3, spec["hidden_size"]), torch.arange(3), *caches)
    lower({FORWARD: Traced(module, inputs, (1, 0), rows)}, path, target, progress)
    return spec | stated(target) | {"max_rows": rows, "scheme": SCHEMES[weights]}


@_silence()
def export_predictor(predictor: Any, path: Path, weights: str, target: Backend, progress: Report) -> dict[str, Any]:
    """The program of `predictor` as `path`; its meta. Methods: body, the talker's without logits; head_<q>: hidden -> logits.

    The heads stay float32: a frame reads each once, the body fifteen times.
    """
    torch = executorch().torch
    from ouzel.runtimes.executorch.transformer import Transformer, linear

    spec: dict[str, Any] = predictor.spec
    body = Transformer(predictor.stack, project=predictor.projection)
    heads = torch.nn.ModuleList(linear(layer.weight) for layer in predictor.heads)
    quantize(body, weights)
    hidden = int(predictor.stack.norm.weight.shape[0])
    caches = empty_caches(torch, spec, spec["positions"])
    inputs = (torch.zeros(1, FIRST_ROWS, spec["input_size"]), torch.arange(FIRST_ROWS), *caches)
    methods = {BODY: Traced(body, inputs, (1, 0), FIRST_ROWS)}
    methods |= {head(q): Traced(layer, (torch.zeros(1, hidden),)) for q, layer in enumerate(heads, 1)}
    lower(methods, path, target, progress)
    return spec | stated(target) | {"hidden_size": hidden, "scheme": SCHEMES[weights]}


@_silence()
def export_decoder(decoder: Any, path: Path, target: Backend, progress: Report) -> dict[str, Any]:
    """The program of `decoder` as `path`; its meta. One method: codes (n, groups), state -> samples, state."""
    from ouzel.runtimes.executorch.transformer import recast

    # Other runtimes may be converted for after this one, so its layers must stay; its weights need no copy.
    network = copy.deepcopy(decoder, {id(weight): weight for weight in decoder.parameters()})
    recast(network)
    spec: dict[str, Any] = decoder.spec
    frames = min(MAX_NEW, spec["max_new"])
    lower({DECODE: Traced(network, decoder.example(), (0,), frames)}, path, target, progress)
    return spec | stated(target) | {"max_new": frames}


def stated(target: Backend) -> dict[str, Any]:
    """What every artifact's meta says of how it was made."""
    checked = {"unchecked": target.unchecked} if target.unchecked else {}
    return {"backend": target.delegate, "executorch": installed(), **checked}


def lower(methods: Mapping[str, Traced], path: Path, target: Backend, progress: Report) -> None:
    """Write the program of `methods` as `path`. What they write into their inputs, they write in place.

    Raises MissingExtraError without the exporter or the backend's tools, OuzelError when tools that are not checked here fail.
    """
    import torch

    try:
        from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower
        from executorch.exir.passes import MemoryPlanningPass
        from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401  imported for its shapes, which tracing needs
    except ImportError as error:
        raise MissingExtraError(f"ExecuTorch's exporter is incomplete ({error}): pip install 'ouzel[{EXTRA}]'.") from error
    parts = [partitioner(target)]
    with torch.no_grad():
        traced = {name: _trace(torch, method) for name, method in methods.items()}
    progress(0.1)
    # The IR check refuses operators with effects, which writing in place is.
    config = EdgeCompileConfig(_check_ir_validity=False)
    try:
        edge = to_edge_transform_and_lower(traced, partitioner=parts, compile_config=config)
    except Exception as error:
        if not target.unchecked:
            raise
        raise OuzelError(
            f"The tools of backend {target.name} failed over {path.stem} ({first_line(error)}); xnnpack is the one known to work."
        ) from error
    progress(0.8)
    for name in methods:
        _forget_mutations(edge.exported_program(name))
    # Inputs are used where the caller has them: copying them into the program's own memory would copy all keys and values.
    plan = MemoryPlanningPass(alloc_graph_input=False)
    program = edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=plan))
    progress(0.9)
    with path.open("wb") as file:
        program.write_to_file(file)
    progress(1.0)


def _trace(torch: Any, method: Traced) -> Any:
    module, given = method.module.eval().requires_grad_(False), tuple(method.inputs)
    dynamic: Any = None
    if method.varying:
        length = torch.export.Dim("n", min=1, max=method.largest)
        named: list[Any] = [{axis: length} for axis in method.varying]
        # To the tracer, all that forward takes as *args is one argument.
        dynamic = (*named, (None,) * (len(given) - len(named)))
    return torch.export.export(module, given, dynamic_shapes=dynamic, strict=False)


def _forget_mutations(program: Any) -> None:
    """Take the inputs that are written in place off the results: as results they would be copied whole, three times a call."""
    from torch.export.graph_signature import OutputKind

    graph, specs = program.graph_module.graph, program.graph_signature.output_specs
    output = graph.output_node()
    kept = [i for i, spec in enumerate(specs) if spec.kind is not OutputKind.USER_INPUT_MUTATION]
    output.args = (tuple(output.args[0][i] for i in kept),)
    specs[:] = [specs[i] for i in kept]
    graph.eliminate_dead_code()
    program.graph_module.recompile()
