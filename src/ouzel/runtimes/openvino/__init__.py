"""OpenVINO: the codec decoder on x86."""

from ouzel.runtimes.openvino.runtime import RUNTIME

__all__ = ["RUNTIME"]
