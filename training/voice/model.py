"""The talker in trainable form, and what its states mean.

The talker is trained to tell the next frame's components; the codes are those nearest to them. Tables are factorised while they
are learned and become the checkpoint's ordinary tables on export (`training.voice.predictor` writes heads and code predictor):
- text: a row is the sum of the vectors of its three phones and of its pitch level;
- codes: a row is one linear map of the codeword, so that a frame's input is a map of its sound. It lies in the first 128
  channels, and components are read from the others, which lets the code predictor tell states from codes;
- the last channel of a state is trained to be 1: heads have no bias.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ouzel.models.qwen3_tts.track import SPECIALS, THIRDS, Track

from .codec import CODES, DIMS, GROUPS, Codec
from .layers import Norm, rotary, rotated

SPEAKER_IDS = {"fern": 1000, "moss": 1001}
LANGUAGE_IDS = {"english": 1010}
CODEC_IDS = {
    "codec_pad_id": 1020, "codec_bos_id": 1021, "codec_eos_token_id": 1022, "codec_think_id": 1023, "codec_nothink_id": 1024,
    "codec_think_bos_id": 1025, "codec_think_eos_id": 1026,
}  # fmt: skip
SPECIAL_CODES = (*SPEAKER_IDS.values(), *LANGUAGE_IDS.values(), *CODEC_IDS.values())
VOCABULARY = CODES + 1024  # the last 1024 ids are never sampled, the end apart (contract 5.1)
TALKER: dict[str, Any] = {
    "hidden_size": 320, "intermediate_size": 896, "num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 64, "rms_norm_eps": 1e-6, "rope_theta": 1_000_000,
}  # fmt: skip
TEXT_HIDDEN = 128
FIRST_SHARPNESS = 4.0  # of codebook 0: a code's logit falls by this times its squared distance in unit spread


Cache = list[tuple[Tensor, Tensor]]


class Layer(nn.Module):
    def __init__(self, c: dict[str, Any], dropout: float) -> None:
        super().__init__()
        width, inner, size = c["hidden_size"], c["intermediate_size"], c["head_dim"]
        self._heads, self._shared, self._size, self._dropout = c["num_attention_heads"], c["num_key_value_heads"], size, dropout
        self.input_layernorm = Norm(width, c["rms_norm_eps"])
        self.post_attention_layernorm = Norm(width, c["rms_norm_eps"])
        self.self_attn = nn.ModuleDict(
            {
                "q_proj": nn.Linear(width, self._heads * size, bias=False),
                "k_proj": nn.Linear(width, self._shared * size, bias=False),
                "v_proj": nn.Linear(width, self._shared * size, bias=False),
                "o_proj": nn.Linear(self._heads * size, width, bias=False),
                "q_norm": Norm(size, c["rms_norm_eps"]),
                "k_norm": Norm(size, c["rms_norm_eps"]),
            }
        )
        self.mlp = nn.ModuleDict({f"{n}_proj": nn.Linear(width, inner, bias=False) for n in ("gate", "up")})
        self.mlp["down_proj"] = nn.Linear(inner, width, bias=False)

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, past: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        a = self.self_attn
        y = self.input_layernorm(x)
        q = a["q_norm"](a["q_proj"](y).unflatten(2, (self._heads, self._size))).transpose(1, 2)
        k = a["k_norm"](a["k_proj"](y).unflatten(2, (self._shared, self._size))).transpose(1, 2)
        v = a["v_proj"](y).unflatten(2, (self._shared, self._size)).transpose(1, 2)
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        repeat = self._heads // self._shared
        y = F.scaled_dot_product_attention(
            q, k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1), is_causal=past is None and x.shape[1] > 1
        )
        y = a["o_proj"](y.transpose(1, 2).flatten(2))
        x = x + F.dropout(y, self._dropout, self.training)
        y = self.post_attention_layernorm(x)
        y = self.mlp["down_proj"](F.silu(self.mlp["gate_proj"](y)) * self.mlp["up_proj"](y))
        return x + F.dropout(y, self._dropout, self.training), (k, v)


class Stack(nn.Module):
    """Qwen3 layers and the last norm. forward(x (B, T, width), past) -> (normed (B, T, width), cache)."""

    def __init__(self, c: dict[str, Any], dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(c, dropout) for _ in range(c["num_hidden_layers"]))
        self.norm = Norm(c["hidden_size"], c["rms_norm_eps"])
        self._size, self._theta = c["head_dim"], c["rope_theta"]

    def forward(self, x: Tensor, past: Cache | None = None) -> tuple[Tensor, Cache]:
        start = past[0][0].shape[2] if past else 0
        cos, sin = rotary(start, x.shape[1], self._size, self._theta)
        cache: Cache = []
        for index, layer in enumerate(self.layers):
            x, kept = layer(x, cos, sin, past[index] if past else None)
            cache.append(kept)
        return self.norm(x), cache


class Voice(nn.Module):
    """Talker and tables. track: the text vocabulary; codec: the codebooks; spread (128,): deviations of the components."""

    def __init__(self, track: Track, codec: Codec, spread: np.ndarray, dropout: float = 0.1) -> None:
        super().__init__()
        hidden = TALKER["hidden_size"]
        self.track, self.parts = track, codec.parts
        scale = torch.from_numpy((1 / np.maximum(spread, 1e-3)).astype(np.float32))
        self.register_buffer("books", torch.from_numpy(codec.books) * scale, persistent=False)  # (16, CODES, 128) of unit spread
        symbols = len(track.alphabet)
        self.special = nn.Parameter(torch.randn(len(SPECIALS), TEXT_HIDDEN) * 0.5)
        self.phone = nn.Parameter(torch.randn(THIRDS, symbols, TEXT_HIDDEN) * 0.5)
        self.level = nn.Parameter(torch.linspace(-1, 1, track.levels)[:, None] * torch.randn(TEXT_HIDDEN) * 0.7)
        self.linear_fc1, self.linear_fc2 = nn.Linear(TEXT_HIDDEN, TEXT_HIDDEN), nn.Linear(TEXT_HIDDEN, hidden)
        self.code_map = nn.Linear(DIMS, DIMS, bias=False)
        self.special_code = nn.Parameter(torch.randn(len(SPECIAL_CODES), hidden) * 0.3)
        self.talker = Stack(TALKER, dropout)
        self.regress = nn.Linear(hidden - DIMS - 1, DIMS)
        self.end = nn.Parameter(torch.zeros(hidden))
        self.linear_fc2.bias.data[-1] = 4.0  # a flag to begin with
        for name, parameter in self.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                parameter.data.mul_(0.5)

    # ---- tables

    def text_rows(self, ids: Tensor) -> Tensor:
        """Rows of track ids (any shape) before the projection."""
        *three, level = (torch.from_numpy(x) for x in self.track.parts(ids.numpy()))
        return self.phone[0][three[0]] + self.phone[1][three[1]] + self.phone[2][three[2]] + self.level[level]

    def text(self, ids: Tensor) -> Tensor:
        """Rows of text ids (any shape) after the projection."""
        rows = self.text_rows(ids.clamp(min=len(SPECIALS)))
        rows = torch.where((ids >= len(SPECIALS))[..., None], rows, self.special[ids.clamp(max=len(SPECIALS) - 1)])
        return self.linear_fc2(F.silu(self.linear_fc1(rows)))

    def codes(self, ids: list[int]) -> Tensor:
        """Rows of special codebook-0 ids."""
        return self.special_code[[SPECIAL_CODES.index(i) for i in ids]]

    def vectors(self, codes: Tensor) -> Tensor:
        """(..., 16) codes -> (..., 128) components of unit spread."""
        total = self.books[0][codes[..., 0]]
        for group in range(1, GROUPS):
            total = total + self.books[group][codes[..., group]]
        return total

    def history(self, vectors: Tensor) -> Tensor:
        """(..., 128) -> the sum of the sixteen embeddings of a frame."""
        return F.pad(self.code_map(vectors), (0, TALKER["hidden_size"] - DIMS))

    # ---- what a state says

    def flag(self, states: Tensor) -> Tensor:
        """(..., hidden) -> (..., 1), trained to be 1."""
        return states[..., -1:].clamp(min=0.3)

    def components(self, states: Tensor) -> Tensor:
        """(..., hidden) -> (..., 128) components of unit spread. Those of group 0 are read by a head without bias."""
        linear = F.linear(states[..., DIMS:-1], self.regress.weight)
        first = len(self.parts[0])  # group 0 is the first components
        return torch.cat([linear[..., :first] / self.flag(states), linear[..., first:]], -1) + self.regress.bias

    def nearest(self, vectors: Tensor) -> Tensor:
        """(n, 128) -> (n, 16) codes."""
        return torch.stack(
            [torch.cdist(vectors[:, list(p)], self.books[g][:, list(p)]).argmin(1) for g, p in enumerate(self.parts)], 1
        )

    def end_logit(self, states: Tensor) -> Tensor:
        """(..., hidden) -> (...,): what the end has above the best code."""
        x = self.components(states)[..., : len(self.parts[0])]
        return states @ self.end - FIRST_SHARPNESS * self.flag(states)[..., 0] * x.square().sum(-1)

    # ---- networks

    def prefix(self, speaker: str, language: str | None) -> Tensor:
        """(rows, hidden) of contract 4.4 before the first text row."""
        pad, begin, start, assistant, newline = self.text(torch.tensor([0, 1, 3, 5, 6]))
        c = CODEC_IDS
        if language is None:
            tags = [c["codec_nothink_id"], c["codec_think_bos_id"], c["codec_think_eos_id"]]
        else:
            tags = [c["codec_think_id"], c["codec_think_bos_id"], LANGUAGE_IDS[language], c["codec_think_eos_id"]]
        rows = self.codes([*tags, SPEAKER_IDS[speaker], c["codec_pad_id"]])
        beside = torch.stack([pad] * (len(rows) - 1) + [begin])
        return torch.cat([torch.stack([start, assistant, newline]), rows + beside])

    @torch.no_grad()
    def generate(self, ids: list[Tensor], speakers: list[str], limit: int = 20) -> list[np.ndarray]:
        """Free running, a batch at once. ids: text ids of each utterance.

        Returns codes (T, 16) of each; at most `limit` frames beyond its text.
        """
        count = len(ids)
        prefix = torch.stack([self.prefix(speaker, "english") for speaker in speakers])
        bos = self.codes([CODEC_IDS["codec_bos_id"]])[0]
        longest, ends = max(map(len, ids)), torch.tensor([len(one) for one in ids])
        text = torch.zeros(count, longest + limit + 1, dtype=torch.long)
        for row, one in enumerate(ids):
            text[row, : len(one)] = one
            text[row, len(one)] = 2
        rows = self.text(text)
        x = torch.cat([prefix, (rows[:, 0] + bos)[:, None]], 1)
        past: Cache | None = None
        made, alive, lengths = [], torch.ones(count, dtype=torch.bool), [0] * count
        for step in range(longest + limit):
            hidden, past = self.talker(x, past)
            last = hidden[:, -1]
            alive &= (step < ends) | (self.end_logit(last) < 0)  # the front end knows how long its text is
            if not alive.any():
                break
            for row in torch.nonzero(alive)[:, 0].tolist():
                lengths[row] = step + 1
            made.append(self.nearest(self.components(last)))
            x = (self.history(self.vectors(made[-1])) + rows[:, step + 1])[:, None]
        codes = torch.stack(made, 1).numpy()
        return [codes[row, : lengths[row]] for row in range(count)]
