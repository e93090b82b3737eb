"""Write a random checkpoint in the official Hugging Face layout: shapes, speed, memory and parity, never speech.

    python -m ouzel.models.qwen3_tts.random_checkpoint OUT --size tiny --type custom_voice --seed 0

Needs numpy only and holds one block of one tensor at a time. What reads a recording (speaker encoder, codec encoder) is written
if asked for (`--encoders`); the official package initialises its own where it is left out.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

from ...errors import OuzelError, UsageError, choose
from ...unfinished import Unfinished
from .config import CodecConfig, ModelConfig
from .encoder_config import CodecEncoderConfig, SpeakerConfig
from .encoder_tensors import codec_encoder_shapes, speaker_shapes
from .random_config import SAMPLE_RATE, SIZES, TYPES, codec_config, model_config
from .random_encoders import encoder_config, speaker_config
from .random_phones import speak_phones, write_phones
from .random_tokenizer import write_tokenizer
from .random_values import RandomValues
from .shard import write_shard
from .tensors import decoder_shapes, model_shapes

FRONTENDS = ("hf_bpe", "phone_track")
DTYPES = {"bf16": "BF16", "f32": "F32"}
GENERATION = {
    "do_sample": True,
    "temperature": 0.9,
    "top_k": 50,
    "top_p": 1.0,
    "repetition_penalty": 1.05,
    "max_new_tokens": 8192,
    "subtalker_dosample": True,
    "subtalker_temperature": 0.9,
    "subtalker_top_k": 50,
    "subtalker_top_p": 1.0,
}
EXTRACTOR = {
    "feature_extractor_type": "EncodecFeatureExtractor",
    "feature_size": 1,
    "sampling_rate": SAMPLE_RATE,
    "padding_side": "right",
    "padding_value": 0.0,
    "return_attention_mask": True,
    "chunk_length_s": None,
    "overlap": None,
}


def write_random_checkpoint(
    out: str | Path,
    *,
    size: str = "tiny",
    kind: str = "custom_voice",
    seed: int = 0,
    dtype: str = "bf16",
    frontend: str = "hf_bpe",
    encoders: bool = False,
) -> int:
    """Write the checkpoint folder `out` (must not exist) and return its weight bytes.

    size: nano, tiny, 0.6b, 1.7b. kind: custom_voice, base, voice_design. dtype: bf16 or f32 for talker and predictor;
    the codec is f32, as published. frontend: hf_bpe, or phone_track (custom_voice only): English phones, speakers fern and moss.
    encoders: with the codec encoder and, for base, the speaker encoder, for reading recordings; no other value changes by it.
    Equal arguments give equal bytes on every machine.
    """
    choices = {"size": (size, SIZES), "type": (kind, TYPES), "dtype": (dtype, DTYPES), "frontend": (frontend, FRONTENDS)}
    for name, (value, valid) in choices.items():
        if value not in valid:
            raise choose(name, value, valid)
    if frontend == "phone_track" and kind != "custom_voice":
        raise UsageError(f"A phone_track checkpoint has speakers of its own, so its type is custom_voice, not {kind}.")
    folder = Path(out)
    if folder.exists():
        raise UsageError(f"{folder} exists already; remove it or choose another folder.")
    with Unfinished(folder.with_name(folder.name + ".partial")) as partial:
        shutil.rmtree(partial.path, ignore_errors=True)  # of a run that was killed
        (partial.path / "speech_tokenizer").mkdir(parents=True)
        written = _write(partial.path, size, kind, seed, dtype, frontend, encoders)
        partial.become(folder)
    return written


def _write(folder: Path, size: str, kind: str, seed: int, dtype: str, frontend: str, encoders: bool) -> int:
    phones = frontend == "phone_track"
    text_ids, text_vocab = write_phones(folder, seed) if phones else write_tokenizer(folder, published=size != "nano")
    model_json, codec_json = model_config(size, kind, text_ids, text_vocab), codec_config(size)
    if phones:
        model_json = speak_phones(model_json)
    if encoders:
        model_json["speaker_encoder_config"] |= speaker_config(size)
        codec_json["encoder_config"] = encoder_config(size, codec_json["decoder_config"]["codebook_size"], SAMPLE_RATE)
    speech = folder / "speech_tokenizer"
    _dump(folder / "config.json", model_json)
    _dump(folder / "generation_config.json", GENERATION)
    _dump(speech / "config.json", codec_json)
    _dump(speech / "preprocessor_config.json", EXTRACTOR)
    model, codec = ModelConfig.parse(model_json), CodecConfig.parse(codec_json)
    model_tensors, codec_tensors = model_shapes(model.talker), decoder_shapes(codec.decoder)
    if encoders and kind == "base":
        model_tensors |= speaker_shapes(SpeakerConfig.parse(model_json["speaker_encoder_config"], model.talker.hidden_size))
    if encoders:
        codec_tensors |= codec_encoder_shapes(CodecEncoderConfig.parse(codec_json, model.talker.num_code_groups))
    values = RandomValues(model, codec, seed)
    written = write_shard(folder / "model.safetensors", model_tensors, DTYPES[dtype], values.blocks)
    return written + write_shard(speech / "model.safetensors", codec_tensors, "F32", values.blocks)


def _dump(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m ouzel.models.qwen3_tts.random_checkpoint", description=__doc__.splitlines()[0]
    )
    parser.add_argument("out", type=Path, help="folder to write; must not exist")
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--type", choices=TYPES, default="custom_voice")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", choices=tuple(DTYPES), default="bf16")
    parser.add_argument("--frontend", choices=FRONTENDS, default="hf_bpe")
    parser.add_argument("--encoders", action="store_true", help="also what reads recordings, for --type base")
    options = parser.parse_args(arguments)
    try:
        written = write_random_checkpoint(
            options.out,
            size=options.size,
            kind=options.type,
            seed=options.seed,
            dtype=options.dtype,
            frontend=options.frontend,
            encoders=options.encoders,
        )
    except OuzelError as e:
        print(f"error: {e}", file=sys.stderr)
        return e.exit_code
    print(f"{options.out}: {options.size} {options.type}, {written / 1e6:.1f} MB of weights")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
