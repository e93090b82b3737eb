"""ONNX Runtime: talker, code predictor and decoder on any CPU."""

from ouzel.runtimes.onnxruntime.runtime import RUNTIME

__all__ = ["RUNTIME"]
