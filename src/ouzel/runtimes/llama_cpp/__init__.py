"""llama.cpp: all stages and the speaker encoder in its file format, driven through the C functions of a prebuilt library."""

from ouzel.runtimes.llama_cpp.runtime import RUNTIME

__all__ = ["RUNTIME"]
