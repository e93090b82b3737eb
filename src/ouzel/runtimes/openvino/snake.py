"""The sine of the decoder's activations as a polynomial, which OpenVINO joins with the operators around it.

Its own sine is computed value by value, a seventh of the decoder's time; products and sums are compiled into one pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ouzel.runtimes.openvino.library import openvino

_DEGREE = 4  # of sin(r) / r in r squared: 1e-7 at most on half a period, float32's own rounding


def polynomial_sines(model: Any) -> int:
    """Replace, in place, the sines that are only ever squared, as x + gain * sin(x)^2 does; how many there were.

    Their sign does not matter, so the argument is taken modulo pi.
    """
    opset = openvino("openvino.opset13")
    limit = (np.pi / 2) ** 2
    quotient = np.polynomial.Chebyshev.interpolate(lambda u: np.sinc(np.sqrt(u) / np.pi), _DEGREE, domain=[0.0, limit])
    factors = quotient.convert(kind=np.polynomial.Polynomial).coef

    def constant(value: float) -> Any:
        return opset.constant(np.float32(value))

    replaced = 0
    for node in model.get_ops():
        if node.get_type_name() != "Sin" or not _squared(node):
            continue
        x = node.input(0).get_source_output()
        turns = opset.round(opset.multiply(x, constant(1 / np.pi)), mode="half_to_even")
        rest = opset.subtract(x, opset.multiply(turns, constant(np.pi)))
        square = opset.multiply(rest, rest)
        value = constant(factors[-1])
        for factor in factors[-2::-1]:
            value = opset.add(opset.multiply(value, square), constant(factor))
        sine = opset.multiply(value, rest).output(0)
        for target in list(node.output(0).get_target_inputs()):
            target.replace_source_output(sine)
        replaced += 1
    model.validate_nodes_and_infer_types()
    return replaced


def _squared(node: Any) -> bool:
    """Whether all that reads the node's value multiplies it by itself."""
    readers = [target.get_node() for target in node.output(0).get_target_inputs()]
    names = [reader.get_friendly_name() for reader in readers]
    return all(r.get_type_name() == "Multiply" and names.count(r.get_friendly_name()) == 2 for r in readers)
