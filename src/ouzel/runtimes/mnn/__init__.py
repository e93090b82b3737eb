"""MNN: talker and code predictor as modules over buffers that they share with ouzel, the decoder as a session."""

from ouzel.runtimes.mnn.runtime import RUNTIME

__all__ = ["RUNTIME"]
