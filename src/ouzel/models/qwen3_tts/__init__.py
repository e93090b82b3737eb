"""Qwen3-TTS-12Hz: talker, code predictor and codec decoder of one Hugging Face checkpoint."""

from .family import Qwen3TtsFamily

FAMILY = Qwen3TtsFamily()

__all__ = ["FAMILY"]
