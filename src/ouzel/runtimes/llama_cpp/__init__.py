"""llama.cpp: talker and code predictor in its quantised formats, driven through the C functions of a prebuilt library."""

from ouzel.runtimes.llama_cpp.runtime import RUNTIME

__all__ = ["RUNTIME"]
