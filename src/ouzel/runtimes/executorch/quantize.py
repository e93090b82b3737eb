"""Weights of the linear layers in fewer bits, activations in 8 bits found out at each call: 8da4w and 8da8w."""

from __future__ import annotations

from typing import Any

from ouzel.errors import UsageError, choose

WEIGHTS = ("int4", "int8", "fp32")
"""Of talker and code predictor, the default first."""
GROUP = 32
"""Input weights that share a scale at 4 bits; XNNPACK's kernels take multiples of 32."""
SCHEMES = {"int4": f"8da4w, groups of {GROUP}", "int8": "8da8w, a scale for each output", "fp32": "float32"}


def quantize(module: Any, weights: str) -> None:
    """Change the nn.Linear layers below `module` to `weights`. UsageError for an unknown name or where 4 bits do not fit."""
    if weights not in WEIGHTS:
        raise choose("weights of executorch", weights, WEIGHTS)
    if weights == "fp32":
        return
    import torch
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization.granularity import PerAxis, PerGroup

    if weights == "int8":
        quantize_(module, Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int8, weight_granularity=PerAxis(0)))
        return
    for name, layer in module.named_modules():
        if isinstance(layer, torch.nn.Linear) and layer.in_features % GROUP:
            raise UsageError(
                f"Layer {name} has {layer.in_features} inputs, which groups of {GROUP} do not divide: "
                "convert this model with the weights int8 or fp32."
            )
    quantize_(module, Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(GROUP)))
