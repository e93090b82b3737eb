"""Qwen3-TTS-class speech, streamed on the device itself."""
