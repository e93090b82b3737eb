"""The Python interface: load a voice, let it speak."""

from ouzel.api.load import load
from ouzel.api.plan import TextOptions
from ouzel.api.voice import Voice

__all__ = ["TextOptions", "Voice", "load"]
