"""The phone-track text side of random checkpoints: two English speakers, a small track, a prosody that varies by chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...english import BREAK, PHONES, SYMBOLS
from .phone_tokenizer import PhoneTokenizer
from .prosody import KERNEL, UNIT_MS, Prosody
from .track import SPECIALS, THIRDS, Track

Json = dict[str, Any]
SPEAKERS = ("fern", "moss")
LANGUAGE = "english"
THINKING = ("codec_think_id", "codec_nothink_id", "codec_think_bos_id", "codec_think_eos_id")
CONTROL = ("codec_pad_id", "codec_bos_id", "codec_eos_token_id", *THINKING)
TEXT_HIDDEN = 32  # narrower than any talker, so that bundles keep the rows unprojected
TRIPLES = 500
CHANNELS = 8
MEAN_MS = 90.0
TEXT_IDS = {
    "tts_pad_token_id": "<|tts_pad|>",
    "tts_bos_token_id": "<|tts_bos|>",
    "tts_eos_token_id": "<|tts_eos|>",
    "im_start_token_id": "<|im_start|>",
    "im_end_token_id": "<|im_end|>",
    "assistant_token_id": "assistant",
}


def write_phones(folder: Path, seed: int) -> tuple[dict[str, int], int]:
    """Write phone_track.json and prosody.safetensors; returns (the text ids of config.json, text vocabulary size)."""
    tokenizer = PhoneTokenizer(_track(seed), _prosody(seed))
    tokenizer.save(folder)
    return {key: SPECIALS.index(token) for key, token in TEXT_IDS.items()}, tokenizer.track.size


def speak_phones(config: Json) -> Json:
    """A CustomVoice config.json with this text side's speakers, language, text width and, right behind the codes, codec ids."""
    published = config["talker_config"]
    codes = published["code_predictor_config"]["vocab_size"]
    ids = {name: codes + i for i, name in enumerate((*CONTROL, LANGUAGE, *SPEAKERS))}
    talker = {
        **published,
        "vocab_size": codes + len(ids),
        "text_hidden_size": TEXT_HIDDEN,
        **{name: ids[name] for name in CONTROL},
        "codec_language_id": {LANGUAGE: ids[LANGUAGE]},
        "spk_id": {name: ids[name] for name in SPEAKERS},
        "spk_is_dialect": dict.fromkeys(SPEAKERS, LANGUAGE),  # so that "auto" is the one language, not a prompt without any
    }
    return {**config, "talker_config": talker}


def _track(seed: int) -> Track:
    generator = _generator(seed)
    alphabet = (*PHONES, BREAK)
    size = len(alphabet)
    drawn = (generator.random((TRIPLES, THIRDS)) * size).astype(int).tolist()
    triples = {(i, i, i) for i in range(size)} | {(a, b, c) for a, b, c in drawn}
    return Track(alphabet, tuple(sorted(triples)), levels=3, step=2.0)


def _prosody(seed: int) -> Prosody:
    generator = _generator(seed + 1)

    def draw(*shape: int, scale: float = 1.0) -> NDArray[np.float32]:
        values = generator.random(shape, dtype=np.float32) - np.float32(0.5)
        return np.asarray(values * np.float32(scale), np.float32)

    weights = {
        "symbol": draw(len(SYMBOLS), CHANNELS, scale=4.0),
        "speaker": draw(len(SPEAKERS), CHANNELS, scale=4.0),
        "out.weight": draw(CHANNELS, 2),
        "out.bias": np.array([np.log1p(MEAN_MS / UNIT_MS), 0.0], np.float32),
    }
    dilations = (1, 2)
    for layer in range(len(dilations)):
        weights[f"layer.{layer}.weight"] = draw(KERNEL, CHANNELS, CHANNELS)
        weights[f"layer.{layer}.bias"] = draw(CHANNELS)
    return Prosody(SYMBOLS, SPEAKERS, dilations, weights)


def _generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=seed))
