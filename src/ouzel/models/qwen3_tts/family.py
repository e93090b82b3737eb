"""Qwen3-TTS as a model family: checkpoint, front end files, networks, front end. Imports the heavy parts when asked."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import BundleError, CheckpointError
from .config import CODEC_TYPE, MODEL_TYPE, CodecConfig, ModelConfig
from .frontend import Qwen3TtsFrontend
from .phone_tokenizer import PhoneTokenizer
from .strict import load_json
from .tables import read_tables, write_tables
from .text_side import load_text_side, read_text_side, write_text_side
from .voices import VOICES, voices_of

if TYPE_CHECKING:
    from ouzel.bundle import Bundle, BundleWriter
    from ouzel.models.base import Progress
    from ouzel.pipeline.topology import PipelineConfig

    from .checkpoint import Checkpoint

CONFIG, CODEC_CONFIG = "config.json", "codec.json"


@dataclass(frozen=True, slots=True)
class Qwen3TtsNetworks:
    """torch modules of one checkpoint, for conversion."""

    talker: Any
    predictor: Any
    decoder: Any


@dataclass(frozen=True, slots=True)
class Qwen3TtsEncoders:
    """Implements `ouzel.models.base.Encoders`."""

    speaker_encoder: Any | None
    codec_encoder: Any | None


class Qwen3TtsFamily:
    """Implements `ouzel.models.base.Family` and `CloningFamily`."""

    name = MODEL_TYPE

    def pipeline(self) -> PipelineConfig:
        from .pipeline import PIPELINE

        return PIPELINE

    def recognises(self, config: Mapping[str, Any]) -> bool:
        # Another codec is another family; without any the reader names what is missing.
        return config.get("model_type") == MODEL_TYPE and config.get("tokenizer_type", CODEC_TYPE) == CODEC_TYPE

    def read_checkpoint(self, path: Path) -> Checkpoint:
        from .checkpoint import Checkpoint

        return Checkpoint(path)

    def write_frontend(self, checkpoint: Checkpoint, writer: BundleWriter, weights: str, progress: Progress) -> None:
        """Configs, text side, voices.json and deploy.yaml if present, tables (float32 for fp32 weights, else float16)."""
        progress("tokenizer", 0.0)
        writer.describe(task=checkpoint.config.task)
        writer.json(CONFIG, load_json(checkpoint.folder / "config.json"))
        writer.json(CODEC_CONFIG, load_json(checkpoint.folder / "speech_tokenizer" / "config.json"))
        text = read_text_side(checkpoint.folder, checkpoint.config)
        write_text_side(text, writer)
        if os.path.lexists(checkpoint.folder / VOICES):
            about = load_json(checkpoint.folder / VOICES)
            voices_of(checkpoint.config.talker, about, f"{checkpoint.folder / VOICES}", CheckpointError)
            writer.json(VOICES, about)
        from ouzel.bundle import DEPLOY

        if os.path.isfile(checkpoint.folder / DEPLOY):
            shutil.copyfile(checkpoint.folder / DEPLOY, writer.path(DEPLOY))
        dtype = np.float32 if weights == "fp32" else np.float16
        summands = text.track.summands() if isinstance(text, PhoneTokenizer) else None
        write_tables(checkpoint, writer, dtype, lambda done: progress("embedding tables", 0.1 + 0.9 * done), summands)

    def networks(self, checkpoint: Checkpoint) -> Qwen3TtsNetworks:
        from .network.decoder import build_decoder
        from .network.predictor import Predictor
        from .network.talker import Talker

        talker = Talker(checkpoint.config.talker, checkpoint.talker())
        predictor = Predictor(checkpoint.config.talker.predictor, checkpoint.predictor())
        return Qwen3TtsNetworks(talker, predictor, build_decoder(checkpoint))

    def encoders(self, checkpoint: Checkpoint) -> Qwen3TtsEncoders:
        from .network.codec_encoder import CodecEncoder
        from .network.speaker import SpeakerEncoder

        speaker, codec, groups = checkpoint.speaker, checkpoint.encoder, checkpoint.config.talker.num_code_groups
        return Qwen3TtsEncoders(
            SpeakerEncoder(speaker, checkpoint.speaker_encoder()) if speaker is not None else None,
            CodecEncoder(codec, checkpoint.codec_encoder(), groups) if codec is not None else None,
        )

    def frontend(self, bundle: Bundle, *, max_instructions: int | None = None) -> Qwen3TtsFrontend:
        config = ModelConfig.parse(bundle.json(CONFIG), f"{bundle.root / CONFIG}")
        codec = CodecConfig.parse(bundle.json(CODEC_CONFIG), f"{bundle.root / CODEC_CONFIG}")
        tables, tokenizer = read_tables(bundle, config), load_text_side(bundle, config)
        about = bundle.json(VOICES) if VOICES in bundle.manifest.files else {}
        voices = voices_of(config.talker, about, f"{bundle.root / VOICES}", BundleError)
        return Qwen3TtsFrontend(config, codec, tables, tokenizer, voices=voices, max_instructions=max_instructions)
