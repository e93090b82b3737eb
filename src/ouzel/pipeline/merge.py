"""Merge rules of deploy files (contract 1.4): pure functions on parsed YAML."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from ouzel.errors import ConfigError

log = logging.getLogger("ouzel.pipeline")

Raw = dict[str, Any]

DEEP_STAGE_KEYS = (
    "default_sampling_params",
    "default_pooling_params",
    "subtalker_sampling_params",
    "engine_extras",
    "engine_args",
    "edge",  # ours; the server has no such key (docs/deploy.md)
)
"""Stage fields merged key by key; every other field is replaced as a whole."""


def deep(base: Mapping[str, Any], over: Mapping[str, Any]) -> Raw:
    """`over` on top of `base`, mappings merged recursively. A mapping that meets a non-mapping is replaced, with a warning."""
    merged = dict(base)
    for key, new in over.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            merged[key] = deep(old, new)
            continue
        if old is not None and isinstance(old, Mapping) != isinstance(new, Mapping):
            log.warning("%s: a %s replaces a %s as a whole", key, type(new).__name__, type(old).__name__)
        merged[key] = new
    return merged


def stage(base: Mapping[str, Any], over: Mapping[str, Any]) -> Raw:
    """One stage block on top of another."""
    nested = deep({k: base[k] for k in DEEP_STAGE_KEYS if k in base}, {k: over[k] for k in DEEP_STAGE_KEYS if k in over})
    return {**base, **over, **nested}


def stages(base: Sequence[Raw] | None, over: Sequence[Raw] | None) -> list[Raw]:
    """Two `stages:` lists by stage_id; the base's order first, new ids after it."""
    by_id: dict[int, Raw] = {block["stage_id"]: block for block in base or ()}
    for block in over or ():
        known = by_id.get(block["stage_id"])
        by_id[block["stage_id"]] = block if known is None else stage(known, block)
    return list(by_id.values())


def platforms(base: Mapping[str, Any] | None, over: Mapping[str, Any] | None) -> Raw:
    """Two `platforms:` blocks, per platform and per stage_id."""
    merged: Raw = {}
    for name in dict.fromkeys([*(base or {}), *(over or {})]):
        low, high = (base or {}).get(name) or {}, (over or {}).get(name) or {}
        merged[name] = {**low, **high, "stages": stages(low.get("stages"), high.get("stages"))}
    return merged


def documents(base: Raw, over: Raw) -> Raw:
    """A deploy file on top of its base_config."""
    merged = {**base, **over}
    for key in ("connectors", "edge", "playback"):
        if base.get(key) and over.get(key):
            merged[key] = deep(base[key], over[key])
        elif base.get(key):
            merged[key] = base[key]
    merged["stages"] = stages(base.get("stages"), over.get("stages"))
    if base.get("platforms") or over.get("platforms"):
        merged["platforms"] = platforms(base.get("platforms"), over.get("platforms"))
    return merged


def flat_stage(block: Mapping[str, Any]) -> Raw:
    """The flat layout of a stage block that may be nested (`engine_args`, `runtime`, `engine_extras`); nested values win.

    `env` and `devices` come from `runtime` where it has them. `engine_extras` wins over fields of the same name.
    """
    flat = {k: v for k, v in block.items() if k not in ("engine_args", "runtime", "engine_extras")}
    runtime = block.get("runtime") or {}
    flat.update({k: runtime[k] for k in ("devices", "num_replicas", "env") if k in runtime})
    return deep(deep(flat, block.get("engine_args") or {}), block.get("engine_extras") or {})


def platform_stage(block: Mapping[str, Any], over: Mapping[str, Any]) -> Raw:
    """A `platforms.<p>.stages` entry on top of a flat stage block.

    With `engine_args`, the server reads only that and `runtime`; keys beside them are ignored there, so here too, with a warning.
    """
    if "engine_args" in over:
        beside = sorted(set(over) - {"engine_args", "runtime", "stage_id"})
        if beside:
            log.warning("platform entry of stage %s: ignored beside engine_args: %s", over.get("stage_id"), ", ".join(beside))
        over = {k: over[k] for k in ("engine_args", "runtime") if k in over}
    flat = flat_stage(over)
    merged = {**block, **flat}
    for key in (*DEEP_STAGE_KEYS, "env"):
        if isinstance(block.get(key), Mapping) and isinstance(flat.get(key), Mapping):
            merged[key] = {**block[key], **flat[key]}
    merged["stage_id"] = block["stage_id"]
    return merged


def sampling(params: Mapping[str, Any] | None, constraints: Mapping[str, Any]) -> Raw:
    """Sampling parameters with the pipeline's constraints (contract 1.4): constraints win; stop ids are unioned, in order."""
    merged = {**(params or {}), **constraints}
    if "stop_token_ids" in constraints:
        own = (params or {}).get("stop_token_ids") or ()
        if isinstance(own, (str, int)) or not isinstance(own, Sequence):
            raise ConfigError(f"stop_token_ids must be a list of ids, found {own!r}.")
        merged["stop_token_ids"] = list(dict.fromkeys([*own, *(constraints["stop_token_ids"] or ())]))
    return merged
