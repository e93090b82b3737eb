"""Packed weights: equal to ONNX Runtime's own quantiser, and what the files that hold them look like."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnxruntime.capi import _pybind_state as reference

import ar_case
from ouzel.errors import UsageError
from ouzel.runtimes.onnxruntime.export import export_talker
from ouzel.runtimes.onnxruntime.quantize import dequantize, quantize, weight_format


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("shape", [(8, 64), (100, 128), (1030, 192), (5, 96)])
def test_blocks_equal_the_reference_quantiser(bits: int, shape: tuple[int, int]) -> None:
    out, size = shape
    weight = np.random.default_rng(size).standard_normal(shape).astype(np.float32)
    weight[1, :64] = 0
    weight[2, :5] = [3.5, -3.5, 3.5, -7, 7]  # halves, and both ends of the range
    blocks = -(-size // 64)
    packed, scales = np.zeros((out, blocks, 8 * bits), np.uint8), np.zeros(out * blocks, np.float32)
    zeros = np.zeros((out, -(-blocks * bits // 8)), np.uint8)
    pack = reference.quantize_matmul_4bits if bits == 4 else reference.quantize_matmul_8bits
    pack(packed, np.ascontiguousarray(weight.T), scales, zeros, 64, out, size, True)
    got, got_scales = quantize(weight, bits, 64)
    np.testing.assert_array_equal(got_scales, scales)
    inside = dequantize(got, got_scales, bits)[:, :size]
    np.testing.assert_array_equal(inside, dequantize(packed, scales, bits)[:, :size])
    assert np.abs(inside - weight).max() <= np.abs(scales).max()  # one step where both ends of the range are in one block


def test_unknown_formats_are_named() -> None:
    with pytest.raises(UsageError, match=r"'int5'.*fp32, int8, int4"):
        weight_format("int5")
    with pytest.raises(UsageError, match="bits '3'"):
        quantize(np.zeros((1, 64), np.float32), 3, 64)


def test_weights_lie_beside_the_graph_once_and_progress_ends_at_one(tmp_path: Path) -> None:
    checkpoint = ar_case.nano_checkpoint(tmp_path / "checkpoint")
    talker = ar_case.talker(checkpoint)
    sizes = {}
    for weights in ("fp32", "int8", "int4"):
        seen: list[float] = []
        folder = tmp_path / weights
        folder.mkdir()
        assert export_talker(talker, folder, weight_format(weights), seen.append) == ["talker.onnx", "talker.data"]
        assert seen == sorted(seen)
        assert seen[-1] == 1
        model = onnx.load(folder / "talker.onnx", load_external_data=False)
        outside = [i for i in model.graph.initializer if i.data_location == onnx.TensorProto.EXTERNAL]
        offsets = [{e.key: e.value for e in i.external_data} for i in outside]
        assert len({o["offset"] for o in offsets}) == len(outside) == len({i.name for i in outside})
        assert all(int(o["offset"]) % 4096 == 0 for o in offsets)
        matrices = [n for n in model.graph.node if n.op_type in ("MatMul", "MatMulNBits")]
        assert {n.op_type for n in matrices} == {"MatMul" if weights == "fp32" else "MatMulNBits"}
        assert len(matrices) == 4 * 2 + 1
        bits = {n.input[1].removesuffix(".weight.q"): a.i for n in matrices for a in n.attribute if a.name == "bits"}
        assert weights == "fp32" or bits == {name: 8 if name == "head" else int(weights[3:]) for name in bits}
        sizes[weights] = sum(int(o["length"]) for o in offsets)
    assert sizes["int4"] < sizes["int8"] < sizes["fp32"]
