"""Weights of the linear layers in fewer bits, activations in 8 bits found out at each call: 8da4w and 8da8w."""

from __future__ import annotations

from functools import partial
from typing import Any

from ouzel.errors import UsageError, choose

WEIGHTS = ("int4", "int8", "fp32")
"""Of talker and code predictor, the default first."""
GROUP = 32
"""Input weights that share a scale at 4 bits; XNNPACK's kernels take multiples of 32."""
SCHEMES = {"int4": f"8da4w, groups of {GROUP}; heads float32", "int8": "8da8w; heads float32", "fp32": "float32"}
HEAD = "head"
"""A layer that logits come from keeps float32: rounding goes straight into the distribution, and it is little of the work."""


def quantize(module: Any, weights: str) -> None:
    """Change the nn.Linear layers below `module` to `weights`, but for HEAD.

    UsageError for an unknown name, or where 4 bits do not fit.
    """
    if weights not in WEIGHTS:
        raise choose("weights of executorch", weights, WEIGHTS)
    if weights == "fp32":
        return
    import torch
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization.granularity import PerAxis, PerGroup
    from torchao.quantization.quant_primitives import MappingType

    # The package's usual mapping cuts off the largest weight of a group where it is positive, by a fifteenth at 4 bits.
    config = partial(Int8DynamicActivationIntxWeightConfig, weight_mapping_type=MappingType.SYMMETRIC_NO_CLIPPING_ERR)
    linear = {name: layer for name, layer in module.named_modules() if isinstance(layer, torch.nn.Linear) and name != HEAD}
    if weights == "int8":
        kind = config(weight_dtype=torch.int8, weight_granularity=PerAxis(0))
    else:
        kind = config(weight_dtype=torch.int4, weight_granularity=PerGroup(GROUP))
        for name, layer in linear.items():
            if layer.in_features % GROUP:
                raise UsageError(
                    f"Layer {name} has {layer.in_features} inputs, which groups of {GROUP} do not divide: "
                    "convert this model with the weights int8 or fp32."
                )
    quantize_(module, kind, filter_fn=lambda _, name: name in linear)
