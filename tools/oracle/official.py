"""Greedy goldens from the official qwen-tts package (run with the Python of its venv).

    official.py CHECKPOINTS OUT [CASE ...]      CHECKPOINTS/{custom_voice,base,voice_design}; OUT/official_<case>.npz

Each file: prompt float32 (P, H), codes int16 (frames, 16), checkpoint (sha256), versions.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import sys
import types
from pathlib import Path

import numpy as np
from cases import CASES, FRAMES, Case, reference_codes, vector


def absent_audio_modules() -> None:
    """qwen_tts imports torchaudio and sox for features that the 12 Hz models never call; neither fits the CPU torch here."""
    for name in ("torchaudio", "torchaudio.compliance", "torchaudio.compliance.kaldi", "sox"):
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        module.__path__ = []
        sys.modules[name] = module
    sys.modules["torchaudio"].compliance = sys.modules["torchaudio.compliance"]
    sys.modules["torchaudio.compliance"].kaldi = sys.modules["torchaudio.compliance.kaldi"]


def generate(model, case: Case, **options) -> None:
    if case.layout is not None:
        options["non_streaming_mode"] = case.layout
    if case.task == "custom_voice":
        model.generate_custom_voice(case.text, case.voice, case.language, instruct=case.instruct, **options)
    elif case.task == "voice_design":
        model.generate_voice_design(case.text, case.instruct, case.language, **options)
    else:
        import torch
        from qwen_tts.inference.qwen3_tts_model import VoiceClonePromptItem

        hidden = model.model.config.talker_config.hidden_size
        item = VoiceClonePromptItem(
            ref_code=torch.from_numpy(reference_codes()) if case.icl else None,
            ref_spk_embedding=torch.from_numpy(vector(hidden)),
            x_vector_only_mode=not case.icl,
            icl_mode=case.icl,
            ref_text=case.ref_text,
        )
        model.generate_voice_clone(case.text, case.language, voice_clone_prompt=[item], **options)


def main() -> None:
    checkpoints, out = Path(sys.argv[1]), Path(sys.argv[2])
    only = set(sys.argv[3:])
    out.mkdir(parents=True, exist_ok=True)
    absent_audio_modules()
    import torch
    import transformers
    from qwen_tts import Qwen3TTSModel

    torch.set_num_threads(1)
    chosen = [c for c in CASES if not only or c.name in only]
    for task in dict.fromkeys(c.task for c in chosen):
        path = checkpoints / task
        digest = hashlib.sha256((path / "model.safetensors").read_bytes()).hexdigest()
        model = Qwen3TTSModel.from_pretrained(str(path), dtype=torch.float32, attn_implementation="eager", device_map=None)
        talker, seen = model.model.talker, {}
        original = talker.generate

        def record(original=original, seen=seen, **kwargs):
            seen["prompt"] = kwargs["inputs_embeds"].detach().float().numpy()[0]
            result = original(**kwargs)
            seen["codes"] = torch.stack([h[-1] for h in result.hidden_states if h[-1] is not None], 1)[0].numpy()
            return result

        talker.generate = record
        # The waveform is not part of these goldens, and decoding it costs as much again.
        model.model.speech_tokenizer.decode = lambda items: ([np.zeros(1, np.float32)] * len(items), 24000)
        for case in (c for c in chosen if c.task == task):
            generate(
                model, case, do_sample=False, subtalker_dosample=False, repetition_penalty=case.penalty, max_new_tokens=FRAMES
            )
            np.savez_compressed(
                out / f"official_{case.name}.npz",
                prompt=seen["prompt"].astype(np.float32),
                codes=seen["codes"].astype(np.int16),
                checkpoint=digest,
                versions=f"qwen-tts 0.1.1, transformers {transformers.__version__}, torch {torch.__version__}",
            )
            print(case.name, "prompt", seen["prompt"].shape, "frames", len(seen["codes"]), "distinct codebook-0 ids",
                  len(set(seen["codes"][:, 0].tolist())), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
