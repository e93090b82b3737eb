"""Heads and code predictor by construction: nothing is trained, the codes are those nearest to the talker's components.

The groups of a product-quantised frame are independent given the talker's state, so a predictor has only to carry the components
from the state (its position 0) to the position of each group, where the head holds distances: of x to codeword c, up to what all
codes share, |x - c|^2 = |c|^2 - 2 c x, which is linear in x once there is a constant.

Channels of the predictor: the 128 components; in a block of their own (so that block-wise quantisation of weights or activations
never mixes them) CONSTANT, so large that every RMS norm divides by the same, and FLAG, which tells the state, whose last channel
is 1, from codes, whose rows lie in the talker's first 128 channels and are read as nothing. One layer of attention looks at the
position with the flag and adds its components; the MLP is zero. The rotary angles of the pair (31, 63) do not reach 1e-4 in 16
positions.

Some runtimes round a whole row of activations with one scale, so the norm before the attention weighs CONSTANT and FLAG down to
the size of the components, and queries and keys, which alone read them, weigh them up again.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .codec import CODES, DIMS, GROUPS
from .model import FIRST_SHARPNESS, Voice

WIDTH = 160
CONSTANT, FLAG = DIMS, DIMS + 1
SIZE = 64  # of a head; two carry 64 components each
PREDICTOR: dict[str, Any] = {
    "hidden_size": WIDTH, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2,
    "head_dim": SIZE, "rms_norm_eps": 1e-6, "rope_theta": 1_000_000,
}  # fmt: skip
LEVEL = 256.0  # of the constant channel, beside components of about 1
NORM = LEVEL / WIDTH**0.5  # what every RMS norm divides by
FLAG_LEVEL = 16.0
FLAG_KEY = 0.01  # of the constant in a key: a state's flag outweighs it, a code has nothing else
FOCUS = 4.0  # the state's score is 10 times this above a code's
SHARPNESS = 4.0  # of a group's distribution, as FIRST_SHARPNESS


def _distances(words: Tensor, bias: Tensor, sharpness: float) -> tuple[Tensor, Tensor]:
    """Of codewords (CODES, d) to components x + bias (d,): what multiplies x (CODES, d) and what is added (CODES,)."""
    return 2 * sharpness * words, sharpness * (2 * words @ bias - words.square().sum(1))


@torch.no_grad()
def first_head(net: Voice) -> Tensor:
    """(CODES, hidden): the rows of `codec_head` for codebook 0."""
    part = list(net.parts[0])
    slope, offset = _distances(net.books[0][:, part], net.regress.bias[part], FIRST_SHARPNESS)
    rows = torch.zeros(CODES, len(net.end))
    rows[:, DIMS:-1] = slope @ net.regress.weight[part]
    rows[:, -1] = offset
    return rows


@torch.no_grad()
def predictor_tensors(net: Voice) -> dict[str, Tensor]:
    """The tensors under `talker.code_predictor.`, its code tables apart."""
    into = torch.zeros(WIDTH, len(net.end))
    into[:DIMS, DIMS:-1] = net.regress.weight
    into[FLAG, -1] = FLAG_LEVEL
    begin = torch.zeros(WIDTH)
    begin[CONSTANT] = LEVEL
    normed = WIDTH**0.5  # the constant behind an RMS norm
    before = torch.ones(WIDTH)
    before[CONSTANT], before[FLAG] = 1 / LEVEL, 1 / FLAG_LEVEL
    query, key = torch.zeros(2 * SIZE, WIDTH), torch.zeros(2 * SIZE, WIDTH)
    low, high = SIZE // 2 - 1, SIZE - 1  # the slowest rotary pair
    for head in range(2):
        query[head * SIZE + low, CONSTANT], query[head * SIZE + high, CONSTANT] = LEVEL, -LEVEL
        key[head * SIZE + low, FLAG], key[head * SIZE + high, CONSTANT] = FLAG_LEVEL, FLAG_KEY * LEVEL
    carry = torch.zeros(2 * SIZE, WIDTH)
    carry[:, : 2 * SIZE] = torch.eye(2 * SIZE)
    final = torch.full((WIDTH,), NORM)
    final[DIMS:] = 1 / normed
    at = "model.layers.0."
    tensors = {
        "small_to_mtp_projection.weight": into,
        "small_to_mtp_projection.bias": begin,
        f"{at}input_layernorm.weight": before,
        f"{at}post_attention_layernorm.weight": torch.ones(WIDTH),
        f"{at}self_attn.q_proj.weight": query,
        f"{at}self_attn.k_proj.weight": key,
        f"{at}self_attn.v_proj.weight": carry,
        f"{at}self_attn.o_proj.weight": carry.T * math.hypot(LEVEL, FLAG_LEVEL) / normed,
        f"{at}self_attn.q_norm.weight": torch.full((SIZE,), FOCUS),
        f"{at}self_attn.k_norm.weight": torch.ones(SIZE),
        f"{at}mlp.gate_proj.weight": torch.zeros(PREDICTOR["intermediate_size"], WIDTH),
        f"{at}mlp.up_proj.weight": torch.zeros(PREDICTOR["intermediate_size"], WIDTH),
        f"{at}mlp.down_proj.weight": torch.zeros(WIDTH, PREDICTOR["intermediate_size"]),
        "model.norm.weight": final,
    }
    for group in range(1, GROUPS):
        part = list(net.parts[group])
        head = torch.zeros(CODES, WIDTH)
        head[:, part], head[:, CONSTANT] = _distances(net.books[group][:, part], net.regress.bias[part], SHARPNESS)
        tensors[f"lm_head.{group - 1}.weight"] = head
    return tensors
