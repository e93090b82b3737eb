"""ExecuTorch: talker, code predictor and decoder as programs for XNNPACK, and for the backends of phones."""

from ouzel.runtimes.executorch.runtime import RUNTIME

__all__ = ["RUNTIME"]
