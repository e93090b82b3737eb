"""From the sampling parameters of a deploy file to the values that a talker takes (contract 5.3, 5.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ouzel.adapters import SubtalkerSampling, TalkerSampling
from ouzel.errors import ConfigError
from ouzel.pipeline.reader import Reader

TALKER_KEYS = ("temperature", "top_k", "top_p", "repetition_penalty", "min_tokens", "max_tokens", "stop_token_ids", "seed")
SUBTALKER_KEYS = ("do_sample", "temperature", "top_k", "top_p")


def talker_sampling(where: str, sampling: Mapping[str, Any], subtalker: Mapping[str, Any]) -> TalkerSampling:
    """Typed sampling of the talker stage. A key left out takes the contract's value, which is TalkerSampling's default.

    `where` names the file in errors. Raises ConfigError on wrong types and ranges; other keys are left alone.
    """
    read, base = Reader(where, sampling, "default_sampling_params"), TalkerSampling()
    top_p = read.number("top_p", base.top_p, above=0.0)
    if top_p > 1.0:
        raise read.fault("top_p", "a number above 0 and at most 1", top_p)
    stop = sampling.get("stop_token_ids")
    max_tokens = read.integer("max_tokens", base.max_tokens, minimum=1) or base.max_tokens
    return TalkerSampling(
        temperature=read.number("temperature", base.temperature, minimum=0.0),
        top_k=_top_k(read, base.top_k),
        top_p=top_p,
        repetition_penalty=read.number("repetition_penalty", base.repetition_penalty, above=0.0),
        min_tokens=min(_or(read.integer("min_tokens", minimum=0), base.min_tokens), max_tokens),
        max_tokens=max_tokens,
        stop_token_ids=base.stop_token_ids if stop is None else tuple(stop),
        seed=_or(read.integer("seed"), base.seed),
        subtalker=_subtalker(where, subtalker),
    )


def _subtalker(where: str, params: Mapping[str, Any]) -> SubtalkerSampling:
    read, base = Reader(where, params, "subtalker_sampling_params"), SubtalkerSampling()
    read.only("sub-talker sampling key", SUBTALKER_KEYS)
    if read.number("top_p", 1.0) != 1.0:
        raise ConfigError(
            f"{where}: {read.at('top_p')} must be 1.0: the code predictor has no top-p sampling, at the server neither."
        )
    return SubtalkerSampling(
        do_sample=read.boolean("do_sample", base.do_sample),
        temperature=read.number("temperature", base.temperature),
        top_k=_top_k(read, base.top_k),
        top_p=1.0,
    )


def _top_k(read: Reader, default: int) -> int:
    """-1 and 0 both mean "all ids" at the server; 0 stands for it here."""
    return max(0, _or(read.integer("top_k", minimum=-1), default))


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
