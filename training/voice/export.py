"""`make voice-export`: the trained parts as a checkpoint in the official layout, then as bundles.

python -m training.voice.export --work DIR --out DIR/checkpoint
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ouzel.models.qwen3_tts.config import load_configs
from ouzel.models.qwen3_tts.random_config import SAMPLE_RATE
from ouzel.models.qwen3_tts.shard import write_shard
from ouzel.models.qwen3_tts.tensors import decoder_shapes, model_shapes

from . import model, predictor
from .codec import CODES, GROUPS, Codec
from .gate import voice
from .vocoder import Vocoder

TEXT_IDS = {
    "tts_pad_token_id": 0, "tts_bos_token_id": 1, "tts_eos_token_id": 2, "im_start_token_id": 3, "im_end_token_id": 4,
    "assistant_token_id": 5,
}  # fmt: skip


def model_config(text_vocabulary: int) -> dict[str, Any]:
    """`config.json`."""
    shared = {
        "num_code_groups": GROUPS, "initializer_range": 0.02, "tie_word_embeddings": False, "use_cache": True,
        "attention_bias": False, "attention_dropout": 0.0, "hidden_act": "silu",
    }  # fmt: skip
    codes = {
        "model_type": "qwen3_tts_talker_code_predictor", **predictor.PREDICTOR, **shared, "vocab_size": CODES,
        "max_position_embeddings": 64, "rope_scaling": None,
    }  # fmt: skip
    half = model.TALKER["head_dim"] // 2
    sections = [half - 2 * (half // 3), half // 3, half // 3]
    talker = {
        "model_type": "qwen3_tts_talker", **model.TALKER, **shared, "vocab_size": model.VOCABULARY,
        "max_position_embeddings": 8192,
        "text_hidden_size": model.TEXT_HIDDEN, "text_vocab_size": text_vocabulary, "position_id_per_seconds": 13,
        "rope_scaling": {"interleaved": True, "mrope_section": sections, "rope_type": "default", "type": "default"},
        **model.CODEC_IDS, "codec_language_id": model.LANGUAGE_IDS, "spk_id": model.SPEAKER_IDS,
        "spk_is_dialect": dict.fromkeys(model.SPEAKER_IDS, False), "code_predictor_config": codes,
    }  # fmt: skip
    return {
        "architectures": ["Qwen3TTSForConditionalGeneration"], "model_type": "qwen3_tts",
        "tokenizer_type": "qwen3_tts_tokenizer_12hz", "tts_model_size": "0b6", "tts_model_type": "custom_voice", **TEXT_IDS,
        "speaker_encoder_config": {"enc_dim": model.TALKER["hidden_size"], "sample_rate": SAMPLE_RATE}, "talker_config": talker,
    }  # fmt: skip


def codec_config(decoder: dict[str, Any]) -> dict[str, Any]:
    """`speech_tokenizer/config.json`."""
    return {
        "architectures": ["Qwen3TTSTokenizerV2Model"], "model_type": "qwen3_tts_tokenizer_12hz",
        "decoder_config": {
            **decoder, "codebook_size": CODES, "num_quantizers": GROUPS, "num_semantic_quantizers": 1, "hidden_act": "silu",
            "attention_bias": False, "attention_dropout": 0.0, "layer_scale_initial_scale": 0.1, "max_position_embeddings": 8000,
            "semantic_codebook_size": CODES, "vector_quantization_hidden_dimension": decoder["codebook_dim"],
        },
        "encoder_valid_num_quantizers": GROUPS, "input_sample_rate": SAMPLE_RATE, "output_sample_rate": SAMPLE_RATE,
        "decode_upsample_rate": 1920, "encode_downsample_rate": 1920,
    }  # fmt: skip


@torch.no_grad()
def talker_tensors(net: model.Voice) -> dict[str, Tensor]:
    """Everything of `model.safetensors`, the factorised tables written out."""
    hidden = model.TALKER["hidden_size"]
    ids = torch.arange(len(model.SPECIALS), net.track.size)
    codes = torch.zeros(model.VOCABULARY, hidden)
    codes[:CODES] = net.history(net.books[0])
    codes[list(model.SPECIAL_CODES)] = net.special_code
    heads = torch.zeros(model.VOCABULARY, hidden)
    heads[:CODES] = predictor.first_head(net)
    heads[model.CODEC_IDS["codec_eos_token_id"]] = net.end
    at = "talker.code_predictor."
    tensors = {
        "talker.model.text_embedding.weight": torch.cat([net.special, net.text_rows(ids)]),
        "talker.model.codec_embedding.weight": codes,
        "talker.codec_head.weight": heads,
    }
    for name in ("linear_fc1", "linear_fc2"):
        tensors |= {f"talker.text_projection.{name}.{k}": v for k, v in getattr(net, name).state_dict().items()}
    for group in range(1, GROUPS):
        tensors[f"{at}model.codec_embedding.{group - 1}.weight"] = net.history(net.books[group])
    tensors |= {f"talker.model.{k}": v for k, v in net.talker.state_dict().items()}
    return tensors | {f"{at}{k}": v for k, v in predictor.predictor_tensors(net).items()}


@torch.no_grad()
def decoder_tensors(net: Vocoder, codec: Codec, factors: np.ndarray) -> dict[str, Tensor]:
    """Everything of `speech_tokenizer/model.safetensors`."""
    tensors = {f"decoder.{k}": v for k, v in net.state_dict().items() if k != "proj.weight"}
    for branch, groups in (("rvq_first", range(1)), ("rvq_rest", range(1, GROUPS))):
        at = f"decoder.quantizer.{branch}."
        tensors[f"{at}output_proj.weight"] = net.proj.weight
        tensors[f"{at}input_proj.weight"] = net.proj.weight.transpose(0, 1)  # never used: there is no encoder
        for layer, group in enumerate(groups):
            tensors[f"{at}vq.layers.{layer}._codebook.embedding_sum"] = torch.from_numpy(
                (codec.books[group] * factors).astype(np.float32)
            )
            tensors[f"{at}vq.layers.{layer}._codebook.cluster_usage"] = torch.ones(CODES)
    return tensors


def write(path: Path, shapes: dict[str, tuple[int, ...]], tensors: dict[str, Tensor]) -> None:
    """A float32 safetensors file with exactly the tensors of `shapes`."""
    wrong = set(shapes) ^ set(tensors) | {n for n in shapes.keys() & tensors.keys() if tuple(tensors[n].shape) != shapes[n]}
    if wrong:
        raise ValueError(f"tensors that do not fit the layout: {sorted(wrong)[:5]}")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_shard(path, shapes, "F32", lambda name, _: [tensors[name].detach().contiguous().numpy()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("build/voice"))
    parser.add_argument("--out", type=Path, help="checkpoint folder (default: WORK/checkpoint)")
    args = parser.parse_args()
    out = args.out or args.work / "checkpoint"
    codec = Codec.read(args.work / "codec.npz")
    net, track, _ = voice(args.work, codec.coarser())
    state = torch.load(args.work / "decoder.pt", weights_only=False)
    decoder = Vocoder(state["config"], state["units"])
    decoder.load_state_dict(state["average"])
    (out / "speech_tokenizer").mkdir(parents=True, exist_ok=True)
    (out / "config.json").write_text(json.dumps(model_config(track.size), indent=2) + "\n", encoding="utf-8")
    (out / "speech_tokenizer" / "config.json").write_text(
        json.dumps(codec_config(state["config"]), indent=2) + "\n", encoding="utf-8"
    )
    config, codec_value = load_configs(out)
    write(out / "model.safetensors", model_shapes(config.talker), talker_tensors(net))
    write(
        out / "speech_tokenizer" / "model.safetensors",
        decoder_shapes(codec_value.decoder),
        decoder_tensors(decoder, codec, state["factors"]),
    )
    prosody = json.loads((args.work / "prosody.json").read_text(encoding="utf-8"))
    (out / "phone_track.json").write_text(json.dumps({**track.value(), "prosody": prosody}) + "\n", encoding="utf-8")
    (out / "prosody.safetensors").write_bytes((args.work / "prosody.safetensors").read_bytes())
    for name in ("deploy.yaml", "voices.json"):
        (out / name).write_bytes((Path(__file__).parent / name).read_bytes())
    size = sum(f.stat().st_size for f in out.rglob("*") if f.is_file())
    steps = torch.load(args.work / "talker.pt", weights_only=False)["step"]
    print(f"{out}: {size / 1e6:.1f} MB; talker of {steps} steps, decoder of {state['step']}")


if __name__ == "__main__":
    main()
