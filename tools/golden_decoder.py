"""Golden vectors of the codec decoder: the official package's one-shot decode of random frames.

Run where the official package `qwen_tts` is installed, on a checkpoint that our tests can write again:

    python -m ouzel.models.qwen3_tts.random_checkpoint build/golden-tiny --size tiny --seed 0 --dtype f32
    PYTHON_OF_THE_OFFICIAL_PACKAGE tools/golden_decoder.py build/golden-tiny --out tests/golden/decoder

--out writes tiny.npz (codes int16 (frames, groups); `every` STRIDE-th sample, `first` and `last` frame in full, float32) and
tiny.json (what they were made of). --full FILE.npz writes codes and all samples, for tools/measure_decoder.py.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.machinery
import importlib.metadata
import json
import sys
import types
from pathlib import Path

import numpy as np

FRAMES, STRIDE, SEED = 300, 7, 20240
UNUSED = ("torchaudio", "torchaudio.compliance", "torchaudio.compliance.kaldi", "sox")


class _Missing(types.ModuleType):
    """Stands in for a library that the package imports and its decoder never calls."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def _stand_in(names):
    for name in names:
        module = _Missing(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        module.__path__ = []
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)


def official_decoder(folder: Path):
    """The official decoder class with the checkpoint's decoder tensors, loaded strictly; and its codebook size and groups."""
    _stand_in(UNUSED)
    from qwen_tts.core.tokenizer_12hz.configuration_qwen3_tts_tokenizer_v2 import Qwen3TTSTokenizerV2DecoderConfig
    from qwen_tts.core.tokenizer_12hz.modeling_qwen3_tts_tokenizer_v2 import Qwen3TTSTokenizerV2Decoder
    from safetensors.torch import load_file

    config = Qwen3TTSTokenizerV2DecoderConfig(**json.loads((folder / "config.json").read_text())["decoder_config"])
    tensors = load_file(folder / "model.safetensors")
    network = Qwen3TTSTokenizerV2Decoder(config).float().eval()
    network.load_state_dict({k.removeprefix("decoder."): v.float() for k, v in tensors.items() if k.startswith("decoder.")})
    return network, config.codebook_size, config.num_quantizers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--out", type=Path, help="folder for the golden files")
    parser.add_argument("--full", type=Path, help="write codes and all samples to this .npz")
    parser.add_argument("--frames", type=int, default=FRAMES)
    parser.add_argument("--double", action="store_true", help="decode in float64, as a measure of float32's own error")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    folder = options.checkpoint / "speech_tokenizer"
    network, size, groups = official_decoder(folder)
    codes = np.random.default_rng(SEED).integers(0, size, (options.frames, groups))
    if options.double:
        network = network.double()
    with torch.no_grad():
        samples = network(torch.from_numpy(codes.T[None].copy())).reshape(-1).float().numpy()
    if options.full:
        np.savez(options.full, codes=codes, samples=samples)
    if options.out:
        _write_golden(options.out, folder, codes, samples)
    print(f"{options.frames} frames, rms {samples.std():.3f}, peak {np.abs(samples).max():.3f}")


def _write_golden(out: Path, folder: Path, codes, samples) -> None:
    per_frame = len(samples) // len(codes)
    out.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        out / "tiny.npz",
        codes=codes.astype(np.int16),
        every=samples[::STRIDE],
        first=samples[:per_frame],
        last=samples[-per_frame:],
    )
    meta = {
        "tool": "tools/golden_decoder.py",
        "checkpoint": {"size": "tiny", "kind": "custom_voice", "seed": 0, "dtype": "f32"},
        "codec_sha256": hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest(),
        "frames": len(codes),
        "stride": STRIDE,
        "codes_seed": SEED,
        "versions": {name: importlib.metadata.version(name) for name in ("qwen-tts", "torch", "transformers", "numpy")},
    }
    (out / "tiny.json").write_text(json.dumps(meta, indent=2) + "\n")


if __name__ == "__main__":
    main()
