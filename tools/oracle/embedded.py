"""The embedded checkpoint in the official package: strict loading, the same codes from the same prompt rows, the same sound.

    .venv/bin/python tools/oracle/embedded.py ours CHECKPOINT BUNDLE OUT.npz          # BUNDLE: the checkpoint as fp32
    .venv-official/bin/python tools/oracle/embedded.py official CHECKPOINT OUT.npz    # compares, and fails if they differ

Greedy throughout. The end id is banned up to the planned length on both sides, as the front end plans it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

TEXTS = {"fern": "The kettle is on, so tea will be ready in a moment.", "moss": "Could you open the window a little?"}


def ours(bundle: Path, out: Path) -> None:
    """Prompt rows, codes and samples of this project's fp32 bundle."""
    from ouzel.adapters import TalkerSampling
    from ouzel.api.load import load_stages
    from ouzel.bundle import open_bundle
    from ouzel.models.qwen3_tts import FAMILY
    from ouzel.pipeline import load_deploy
    from ouzel.request import SpeechRequest

    opened = open_bundle(bundle)
    frontend = FAMILY.frontend(opened)
    talker, decoder = load_stages(opened, load_deploy(opened.deploy or "qwen3_tts"), 1)
    arrays: dict[str, np.ndarray] = {}
    for voice, text in TEXTS.items():
        request = frontend.resolve(SpeechRequest(text, voice=voice, language="english"))
        rows = frontend.rows(request, text)
        sampling = replace(
            TalkerSampling().greedy(), repetition_penalty=1.0, stop_token_ids=(frontend.stop_token_id,), allow_id_zero=True
        )
        state, codes = talker.prefill(rows, sampling), []
        while (frame := talker.step([state])[0]).codes is not None:
            codes.append(frame.codes)
        sound = decoder.decode(decoder.start(), np.array(codes))
        arrays |= {f"{voice}.prefill": rows.prefill, f"{voice}.trailing": rows.trailing, f"{voice}.pad": rows.pad}
        arrays |= {
            f"{voice}.codes": np.array(codes),
            f"{voice}.sound": np.asarray(sound),
            f"{voice}.frames": np.array(rows.frames),
        }
        print(f"{voice}: {len(codes)} frames, planned {rows.frames}")
    np.savez(out, **arrays)


def official(checkpoint: Path, out: Path) -> None:
    """Load strictly, generate from the same rows, decode, compare."""
    from official import absent_audio_modules

    absent_audio_modules()
    import torch
    from qwen_tts.core.models.configuration_qwen3_tts import Qwen3TTSConfig
    from qwen_tts.core.models.modeling_qwen3_tts import Qwen3TTSTalkerForConditionalGeneration
    from qwen_tts.core.tokenizer_12hz.configuration_qwen3_tts_tokenizer_v2 import Qwen3TTSTokenizerV2Config
    from qwen_tts.core.tokenizer_12hz.modeling_qwen3_tts_tokenizer_v2 import Qwen3TTSTokenizerV2Decoder
    from safetensors.torch import load_file

    torch.set_num_threads(1)
    config = Qwen3TTSConfig(**json.loads((checkpoint / "config.json").read_text()))
    config.talker_config._attn_implementation = config.talker_config.code_predictor_config._attn_implementation = "eager"
    talker = Qwen3TTSTalkerForConditionalGeneration(config.talker_config).eval()
    tensors = load_file(checkpoint / "model.safetensors")
    talker.load_state_dict({name.removeprefix("talker."): value for name, value in tensors.items()}, strict=True)
    codec = Qwen3TTSTokenizerV2Config(**json.loads((checkpoint / "speech_tokenizer" / "config.json").read_text()))
    codec.decoder_config._attn_implementation = "eager"
    decoder = Qwen3TTSTokenizerV2Decoder(codec.decoder_config).eval()
    tensors = load_file(checkpoint / "speech_tokenizer" / "model.safetensors")
    decoder.load_state_dict({name.removeprefix("decoder."): value for name, value in tensors.items()}, strict=True)
    print("strict state dicts: talker and decoder loaded")
    value, failed = np.load(out), False
    end, size = config.talker_config.codec_eos_token_id, config.talker_config.vocab_size
    for voice in TEXTS:
        rows, trailing = torch.from_numpy(value[f"{voice}.prefill"])[None], torch.from_numpy(value[f"{voice}.trailing"])[None]
        with torch.no_grad():
            result = talker.generate(
                inputs_embeds=rows, attention_mask=torch.ones(rows.shape[:2], dtype=torch.long), trailing_text_hidden=trailing,
                tts_pad_embed=torch.from_numpy(value[f"{voice}.pad"])[None, None], do_sample=False, subtalker_dosample=False,
                eos_token_id=end, suppress_tokens=[i for i in range(size - 1024, size) if i != end], repetition_penalty=1.0,
                min_new_tokens=int(value[f"{voice}.frames"]), max_new_tokens=int(value[f"{voice}.frames"]) + 11,
                output_hidden_states=True, return_dict_in_generate=True,
            )  # fmt: skip
            codes = torch.stack([h[-1] for h in result.hidden_states if h[-1] is not None], 1)[0]
            ends = torch.nonzero(codes[:, 0] == end)
            codes = codes[: int(ends[0])] if len(ends) else codes
            mine = torch.from_numpy(value[f"{voice}.codes"])
            sound = decoder(mine.T[None])[0, 0].numpy()
        same = codes.shape == mine.shape and bool((codes == mine).all())
        own = value[f"{voice}.sound"].reshape(-1)
        noise = 10 * np.log10(np.square(sound).sum() / max(np.square(sound - own).sum(), 1e-20))
        print(f"{voice}: codes {'equal' if same else 'DIFFER'} ({tuple(codes.shape)}), sound {noise:.1f} dB")
        failed |= not same or noise < 80
    sys.exit(int(failed))


if __name__ == "__main__":
    if sys.argv[1] == "ours":
        ours(Path(sys.argv[3]), Path(sys.argv[4]))
    else:
        official(Path(sys.argv[2]), Path(sys.argv[3]))
