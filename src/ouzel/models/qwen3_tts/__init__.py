"""Qwen3-TTS-12Hz: talker, code predictor and codec decoder of one Hugging Face checkpoint."""
