"""A Qwen3-TTS checkpoint in the Hugging Face layout, checked against its own configs and read a tensor at a time.

One folder holds both stages; `Checkpoint` splits it by prefix. What the network code receives (all float32 torch tensors,
prefix stripped, q/k/v and gate/up fused in the order of `tensors.STACKED`):

`talker()`      layers.{i}.input_layernorm.weight (H,)          layers.{i}.self_attn.qkv_proj.weight ((nq + 2 nkv) D, H)
                layers.{i}.self_attn.q_norm.weight (D,)         layers.{i}.self_attn.k_norm.weight (D,)
                layers.{i}.self_attn.o_proj.weight (H, nq D)    layers.{i}.post_attention_layernorm.weight (H,)
                layers.{i}.mlp.gate_up_proj.weight (2 I, H)     layers.{i}.mlp.down_proj.weight (H, I)
                norm.weight (H,)                                codec_head.weight (V, H)
`predictor()`   the same layers.* and norm.weight, with the predictor's sizes, and for g in 0..G-2
                lm_head.{g}.weight (Vp, Hp)                     codec_embedding.{g}.weight (Vp, H), talker width
                small_to_mtp_projection.weight (Hp, H), .bias (Hp,): only when H != Hp
`speaker_encoder()`, `codec_encoder()`: all of `encoder_tensors`, prefix stripped; of Base models that have them (contract 4.5)
`decoder()`     every tensor of the codec decoder without the leading "decoder.": quantizer.*, pre_conv.conv.*,
                pre_transformer.{input_proj,layers.{i},norm,output_proj}.* (layers fused as above, plus
                self_attn_layer_scale.scale and mlp_layer_scale.scale), upsample.{i}.{0,1}.*, decoder.{i}.*
                Codebook tables are raw: embedding_sum / max(cluster_usage, 1e-5) is the caller's division (contract 6.1).

Tables for the front end and the predictor's first row, as numpy float32: `codec_embedding()` E0 (V, H),
`residual_embedding()` Eq (G-1, Vp, H), `text_rows(start, stop)` raw text rows (n, Ht), `text_projection()` its MLP.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...errors import CheckpointError
from .config import CodecConfig, ModelConfig, load_configs
from .encoder_config import CodecEncoderConfig, SpeakerConfig
from .encoder_tensors import CODEC, SPEAKER, codec_encoder_shapes, speaker_shapes
from .shard import Shard
from .strict import load_json
from .tensors import DECODER, PREDICTOR, STACKED, Shapes, decoder_shapes, model_shapes

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[np.float32]
NAMED = 6  # how many tensor names an error spells out


class TensorFile:
    """The tensors of one folder: `model.safetensors`, or the shards named by `model.safetensors.index.json`.

    names: of all that was checked and may be read. unread: of what was let through.
    """

    def __init__(self, folder: Path, expected: Shapes, unread: str) -> None:
        """Checks names and shapes of all tensors against `expected`; names under the prefix `unread` are let through."""
        self.folder = folder
        self._shards: dict[str, Shard] = {}
        for shard in _open_shards(folder):
            for name in shard.tensors:
                if name in self._shards:
                    raise CheckpointError(f"{folder}: {name} is in both {self._shards[name].path.name} and {shard.path.name}.")
                self._shards[name] = shard
        self.unread = sorted(n for n in self._shards if n.startswith(unread))
        found = self._shards.keys() - set(self.unread)
        self.names: list[str] = []
        self.expect(expected)
        if extra := found - expected.keys():
            raise CheckpointError(f"{folder} holds {_some(extra)} that its config.json does not call for.")

    def expect(self, shapes: Shapes) -> None:
        """Checks that these tensors are there, each in its shape, and takes them out of `unread`."""
        if missing := shapes.keys() - self._shards.keys():
            raise CheckpointError(f"{self.folder} lacks {_some(missing)} that its config.json calls for.")
        wrong = [f"{n} is {s}, not {shapes[n]}" for n in sorted(shapes) if (s := self._shards[n].tensors[n][1]) != shapes[n]]
        if wrong:
            more = f" (and {len(wrong) - NAMED} more)" if len(wrong) > NAMED else ""
            raise CheckpointError(f"{self.folder} does not fit its config.json: {'; '.join(wrong[:NAMED])}{more}.")
        self.names += shapes
        self.unread = [n for n in self.unread if n not in shapes]

    def read(self, name: str, rows: slice | None = None) -> Array:
        """One tensor (or rows of it) as fresh float32; refuses NaN and infinite values."""
        return self._shards[name].read(name, rows)


class Checkpoint:
    """A checkpoint folder. Opening reads the configs and the headers; values are read when they are asked for."""

    def __init__(self, folder: str | Path) -> None:
        """CheckpointError when anything is missing, extra, misshapen or unreadable."""
        self.folder = Path(folder)
        if not os.path.isdir(self.folder):
            raise CheckpointError(f"{self.folder} is not a folder; give the folder that holds config.json.")
        self.config: ModelConfig
        self.codec: CodecConfig
        self.config, self.codec = load_configs(self.folder)
        self.model_file = TensorFile(self.folder, model_shapes(self.config.talker), SPEAKER)
        self.codec_file = TensorFile(self.folder / "speech_tokenizer", decoder_shapes(self.codec.decoder), CODEC)
        self.speaker: SpeakerConfig | None = None
        self.encoder: CodecEncoderConfig | None = None
        if self.config.task == "Base":  # no other task takes a recording
            self._expect_encoders()

    def _expect_encoders(self) -> None:
        talker = self.config.talker
        if self.model_file.unread:
            block = load_json(self.folder / "config.json").get("speaker_encoder_config")
            self.speaker = SpeakerConfig.parse(block, talker.hidden_size)
            self.model_file.expect(speaker_shapes(self.speaker))
        if self.codec_file.unread:
            found = load_json(self.folder / "speech_tokenizer" / "config.json")
            self.encoder = CodecEncoderConfig.parse(found, talker.num_code_groups)
            self.codec_file.expect(codec_encoder_shapes(self.encoder, talker.num_code_groups))

    def talker(self) -> dict[str, Tensor]:
        """Weights of the talker transformer and its codebook-0 head; names and shapes in the module's docstring."""
        names = [n for n in self.model_file.names if n.startswith("talker.model.layers.")]
        tensors = self._load(self.model_file, names, "talker.model.")
        tensors |= self._load(self.model_file, ["talker.model.norm.weight"], "talker.model.")
        return tensors | self._load(self.model_file, ["talker.codec_head.weight"], "talker.")

    def predictor(self) -> dict[str, Tensor]:
        """Weights of the code predictor; names and shapes in the module's docstring."""
        inner = [n for n in self.model_file.names if n.startswith(PREDICTOR + "model.")]
        outer = [n for n in self.model_file.names if n.startswith(PREDICTOR) and n not in set(inner)]
        return self._load(self.model_file, inner, PREDICTOR + "model.") | self._load(self.model_file, outer, PREDICTOR)

    def decoder(self) -> dict[str, Tensor]:
        """Weights of the codec decoder; names in the module's docstring."""
        return self._below(self.codec_file, DECODER)

    def speaker_encoder(self) -> dict[str, Tensor]:
        """Weights of the speaker encoder, as `speaker_shapes` names them; none where `speaker` is None."""
        return self._below(self.model_file, SPEAKER)

    def codec_encoder(self) -> dict[str, Tensor]:
        """Weights of the codec encoder, as `codec_encoder_shapes` names them; none where `encoder` is None."""
        return self._below(self.codec_file, CODEC)

    def codec_embedding(self) -> Array:
        """E0, float32 (V, H)."""
        return self.model_file.read("talker.model.codec_embedding.weight")

    def residual_embedding(self) -> Array:
        """Eq for q = 1..G-1, float32 (G-1, Vp, H)."""
        count = self.config.talker.num_code_groups - 1
        return np.stack([self.model_file.read(f"{PREDICTOR}model.codec_embedding.{i}.weight") for i in range(count)])

    def text_rows(self, start: int, stop: int) -> Array:
        """Rows start..stop of the text table before the projection, float32 (stop - start, Ht)."""
        return self.model_file.read("talker.model.text_embedding.weight", slice(start, stop))

    def text_projection(self) -> tuple[Array, Array, Array, Array]:
        """(W1 (Ht, Ht), b1 (Ht,), W2 (H, Ht), b2 (H,)): P(x) = W2 silu(W1 x + b1) + b2, contract 4.2."""
        at = "talker.text_projection.linear_fc"
        first, second = (self.model_file.read(f"{at}1.{k}") for k in ("weight", "bias"))
        third, fourth = (self.model_file.read(f"{at}2.{k}") for k in ("weight", "bias"))
        return first, second, third, fourth

    def _below(self, file: TensorFile, prefix: str) -> dict[str, Tensor]:
        return self._load(file, [n for n in file.names if n.startswith(prefix)], prefix)

    @staticmethod
    def _load(file: TensorFile, names: list[str], prefix: str) -> dict[str, Tensor]:
        import torch

        tensors: dict[str, Tensor] = {}
        for fused, parts in _fuse(names).items():
            arrays = [file.read(p) for p in parts]
            tensors[fused.removeprefix(prefix)] = torch.from_numpy(arrays[0] if len(arrays) == 1 else np.concatenate(arrays))
        return tensors


def _fuse(names: Iterable[str]) -> dict[str, list[str]]:
    """{name given out: the names it is made of, in order}."""
    target = {part: (fused, parts) for fused, parts in STACKED.items() for part in parts}
    plan: dict[str, list[str]] = {}
    for name in names:
        for part, (fused, parts) in target.items():
            head, found, tail = name.partition(f".{part}.")
            if found:
                plan[f"{head}.{fused}.{tail}"] = [f"{head}.{p}.{tail}" for p in parts]
                break
        else:
            plan[name] = [name]
    return plan


def _open_shards(folder: Path) -> list[Shard]:
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if os.path.isfile(index):
        listed = load_json(index).get("weight_map")
        if not isinstance(listed, dict) or not listed:
            raise CheckpointError(f"{index} has no weight_map; download it again.")
        files = sorted({str(f) for f in listed.values()})
        outside = [f for f in files if Path(f).name != f]
        if outside:
            raise CheckpointError(f"{index} points outside its folder: {', '.join(outside[:NAMED])}.")
        return [Shard(folder / f) for f in files]
    if os.path.isfile(single):
        return [Shard(single)]
    pickles = sorted(p.name for p in [*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.pth")])
    if pickles:
        raise CheckpointError(
            f"{folder} holds pickled weights ({', '.join(pickles[:NAMED])}), which can run code when opened; "
            "only safetensors files are read."
        )
    raise CheckpointError(f"{folder} has neither model.safetensors nor model.safetensors.index.json.")


def _some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - NAMED} more" if len(ordered) > NAMED else ""
    return f"{len(ordered)} tensor{'s' if len(ordered) > 1 else ''} ({', '.join(ordered[:NAMED])}{more})"
