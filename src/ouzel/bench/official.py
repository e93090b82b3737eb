"""The official qwen-tts package on the same checkpoint: run as a script by a Python that has it, prints one JSON line.

    official.py CHECKPOINT FRAMES      CPU ms per frame of talker and predictor together, and of its windowed streaming decode

Not imported by ouzel: it needs the official package's own pinned dependencies.
"""

from __future__ import annotations

import importlib.machinery
import json
import sys
import time
import types


def main() -> None:
    checkpoint, frames = sys.argv[1], int(sys.argv[2])
    for name in ("torchaudio", "torchaudio.compliance", "torchaudio.compliance.kaldi", "sox"):  # never called by 12 Hz models
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        module.__path__ = []
        sys.modules[name] = module
    import torch
    from qwen_tts import Qwen3TTSModel

    torch.set_num_threads(1)
    model = Qwen3TTSModel.from_pretrained(checkpoint, dtype=torch.float32, attn_implementation="eager", device_map=None)
    decode = model.model.speech_tokenizer.decode
    model.model.speech_tokenizer.decode = lambda items: ([None] * len(items), 24000)

    def run(count: int) -> float:
        began = time.process_time()
        model.generate_custom_voice(
            "The parcel arrived on Tuesday.", "vivian", "English",
            do_sample=False, subtalker_dosample=False, max_new_tokens=count + 1,
        )  # fmt: skip
        return time.process_time() - began

    run(2)
    few, many = run(2), run(2 + frames)  # the difference leaves the prompt and the set-up out
    model.model.speech_tokenizer.decode = decode
    decoder = model.model.speech_tokenizer.model.decoder
    codes = torch.randint(0, 2048, (1, 16, 97))
    with torch.no_grad():
        decoder(codes[:, :, :8])
        began = time.process_time()
        decoder(codes)
    windowed = time.process_time() - began
    print(
        json.dumps(
            {
                "talker_and_predictor": (many - few) * 1000 / frames,
                "decoder_windowed_72_25": windowed * 1000 / 25,
                "frames": frames,
                "torch": torch.__version__,
            }
        )
    )


if __name__ == "__main__":
    main()
