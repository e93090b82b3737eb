"""What the official qwen-tts package makes of recordings, for a Base model (run with the Python of its venv).

    reference.py CHECKPOINT OUT     writes OUT/official.npz

For each recording of cases.py: <name>.vector float32 (hidden,), <name>.codes int16 (frames, 16). And model and codec (sha256 of
the two weight files), versions. Greedy decoding is not part of it: tests/golden/greedy has that.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np
from cases import RECORDINGS, recording
from official import absent_audio_modules


def main() -> None:
    path, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    absent_audio_modules()
    import torch
    import transformers
    from qwen_tts import Qwen3TTSModel

    torch.set_num_threads(1)
    model = Qwen3TTSModel.from_pretrained(str(path), dtype=torch.float32, attn_implementation="eager", device_map=None)
    found: dict[str, np.ndarray] = {}
    for name in RECORDINGS:
        samples = recording(name).astype(np.float32) / 32768
        (item,) = model.create_voice_clone_prompt(ref_audio=(samples, 24_000), ref_text="What was said.")
        found[f"{name}.vector"] = item.ref_spk_embedding.float().numpy()
        found[f"{name}.codes"] = item.ref_code.numpy().astype(np.int16)
        print(name, {key: value.shape for key, value in found.items() if key.startswith(name)}, flush=True)
    files = {"model": path / "model.safetensors", "codec": path / "speech_tokenizer" / "model.safetensors"}
    np.savez_compressed(
        out / "official.npz",
        versions=f"qwen-tts 0.1.1, transformers {transformers.__version__}, torch {torch.__version__}",
        **{key: hashlib.sha256(file.read_bytes()).hexdigest() for key, file in files.items()},
        **found,
    )


if __name__ == "__main__":
    main()
