"""Give random checkpoints the reference-audio encoder that the real server insists on loading (run with the qwen-tts venv).

    add_encoder.py CHECKPOINTS OUT     copies each checkpoint; speech_tokenizer gains a small random encoder, nothing else changes

Our own writer has --encoders, which adds tensors to the talker's file too; here it stays as it is, byte for byte, because the
goldens are identified by it.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from official import absent_audio_modules

ENCODER = {
    "audio_channels": 1, "codebook_dim": 32, "codebook_size": 2048, "compress": 2, "dilation_growth_rate": 2, "head_dim": 32,
    "hidden_act": "gelu", "hidden_size": 64, "intermediate_size": 64, "kernel_size": 7, "last_kernel_size": 3,
    "num_attention_heads": 2, "num_filters": 8, "num_hidden_layers": 1, "num_key_value_heads": 2, "num_quantizers": 32,
    "num_residual_layers": 1, "num_semantic_quantizers": 1, "residual_kernel_size": 3, "sampling_rate": 24000,
    "sliding_window": 250, "upsample_groups": 64, "upsampling_ratios": [8, 6, 5, 4], "use_causal_conv": True,
    "vector_quantization_hidden_dimension": 32, "_frame_rate": 12.5,
}  # fmt: skip


def main() -> None:
    source, out = Path(sys.argv[1]), Path(sys.argv[2])
    absent_audio_modules()
    import torch
    from qwen_tts.core.tokenizer_12hz.configuration_qwen3_tts_tokenizer_v2 import Qwen3TTSTokenizerV2Config
    from qwen_tts.core.tokenizer_12hz.modeling_qwen3_tts_tokenizer_v2 import Qwen3TTSTokenizerV2Model
    from safetensors.torch import load_file, save_file

    torch.manual_seed(0)
    for checkpoint in sorted(p for p in source.iterdir() if (p / "config.json").is_file()):
        target = out / checkpoint.name
        shutil.copytree(checkpoint, target)
        codec = target / "speech_tokenizer"
        config = json.loads((codec / "config.json").read_text())
        config["encoder_config"] = ENCODER
        (codec / "config.json").write_text(json.dumps(config, indent=2))
        model = Qwen3TTSTokenizerV2Model(Qwen3TTSTokenizerV2Config(**config))
        tensors = load_file(codec / "model.safetensors")
        encoder = {k: v.contiguous().clone() for k, v in model.state_dict().items() if k.startswith("encoder.")}
        save_file({**encoder, **tensors}, codec / "model.safetensors", metadata={"format": "pt"})
        print(target, "encoder tensors added:", len(encoder))


if __name__ == "__main__":
    main()
