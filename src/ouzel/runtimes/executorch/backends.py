"""What a program is lowered for: XNNPACK here, and the accelerators of devices that cannot be checked here."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ouzel.errors import MissingExtraError, choose

VARIABLE = "OUZEL_EXECUTORCH_BACKEND"
"""The environment variable that names the backend to convert for."""


@dataclass(frozen=True, slots=True)
class Backend:
    """delegate: the name under which a runtime registers it. partitioner: makes what picks the operators that it takes.

    unchecked: why its programs are written without having been run, "" where they can be.
    """

    name: str
    delegate: str
    partitioner: Callable[[], Any]
    unchecked: str = ""


def _xnnpack() -> Any:
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner

    return XnnpackPartitioner()


def _vulkan() -> Any:
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner

    return VulkanPartitioner()


def _coreml() -> Any:
    from executorch.backends.apple.coreml.partition import CoreMLPartitioner

    return CoreMLPartitioner(lower_full_graph=False)


def _qnn() -> Any:
    if not os.environ.get("QNN_SDK_ROOT"):  # without it the exporter would try to download a gigabyte
        raise ImportError("QNN_SDK_ROOT does not name Qualcomm's SDK")
    from executorch.backends.qualcomm.partition.qnn_partitioner import QnnPartitioner
    from executorch.backends.qualcomm.serialization.qc_schema import QcomChipset
    from executorch.backends.qualcomm.utils.utils import generate_htp_compiler_spec, generate_qnn_executorch_compiler_spec

    options = generate_htp_compiler_spec(use_fp16=True)
    return QnnPartitioner(generate_qnn_executorch_compiler_spec(soc_model=QcomChipset.SM8650, backend_options=options))


BACKENDS = {
    backend.name: backend
    for backend in (
        Backend("xnnpack", "XnnpackBackend", _xnnpack),
        Backend("vulkan", "VulkanBackend", _vulkan, "the Python package has no Vulkan runtime"),
        Backend("coreml", "CoreMLBackend", _coreml, "only Apple's systems run Core ML"),
        Backend("qnn", "QnnBackend", _qnn, "it needs Qualcomm's SDK, and a Snapdragon to run on (SM8650 is lowered for)"),
    )
}


def chosen_backend(name: str | None = None) -> Backend:
    """The backend called `name`, or by $OUZEL_EXECUTORCH_BACKEND, or XNNPACK. UsageError for an unknown name."""
    name = name or os.environ.get(VARIABLE) or "xnnpack"
    if name not in BACKENDS:
        raise choose("backend of executorch", name, BACKENDS)
    return BACKENDS[name]


def partitioner(target: Backend) -> Any:
    """What lowers for `target`; MissingExtraError when its tools are absent."""
    try:
        return target.partitioner()
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        raise MissingExtraError(
            f"ExecuTorch cannot lower for {target.name} on this machine ({first_line(error)}); that needs tools of the backend's "
            "own, backend xnnpack needs none."
        ) from error


def first_line(error: Exception) -> str:
    """What to show of an error of the exporter's, whose texts may be pages."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
