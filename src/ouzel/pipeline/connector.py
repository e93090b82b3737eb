"""Connectors of a deploy file: on a device all of them are one queue in the process; what counts is their `extra` block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ouzel.errors import ConfigError, choose
from ouzel.pipeline.reader import Reader

CONNECTOR_CLASSES = (
    "SharedMemoryConnector",
    "MooncakeStoreConnector",
    "MooncakeConnector",
    "MooncakeTransferEngineConnector",
    "YuanrongConnector",
    "YuanrongTransferEngineConnector",
    "MoriTransferEngineConnector",
    "NixlConnector",
)
"""Class names that vLLM-Omni 0.30.0 knows (contract 1.5)."""


@dataclass(frozen=True)
class ConnectorSpec:
    """One connector: the server's class name (kept for the record) and its `extra` block."""

    name: str = "SharedMemoryConnector"
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CodecConnector:
    """Chunking of codec frames, from a connector's `extra` with the server's code defaults (contract 1.3, 3.2 to 3.6, 3.9).

    Fields bear the names of the YAML keys. Frames are 80 ms each at 12.5 frames a second.
    initial_codec_chunk_frames: 0 is the dynamic initial chunk. codec_chunk_ramp: () is off.
    ref_code_context_frames: reference frames put in front of the first chunk of a cloned voice.
    ref_audio_artifact_cache_max_entries: vectors and codes of recordings that are remembered; 0: none.
    decode_*: windows of the sync decoder.
    """

    codec_chunk_frames: int = 25
    codec_left_context_frames: int = 25
    initial_codec_chunk_frames: int = 0
    ref_code_context_frames: int = 25
    codec_chunk_ramp: tuple[int, ...] = ()
    codec_chunk_adaptive: bool = False
    codec_chunk_min_frames: int = 2
    codec_chunk_safety_margin_ms: float = 50.0
    codec_chunk_ramp_divisor: int = 15
    codec_chunk_ramp_delta_min: int = 2
    ref_audio_artifact_cache_max_entries: int = 1024
    decode_chunk_frames: int = 300
    decode_left_context_frames: int = 25

    @property
    def schedule(self) -> str:
        """Which of the server's schedules is on: "adaptive" before "ramp" before "fixed"."""
        return "adaptive" if self.codec_chunk_adaptive else "ramp" if self.codec_chunk_ramp else "fixed"


CODEC_KEYS = tuple(f.name for f in fields(CodecConnector))


def read_connector(reader: Reader) -> ConnectorSpec:
    """One connector definition: `name` (class) and `extra`. An unknown class is an error that names the known ones."""
    name = reader.text("name")
    if name is None:
        raise ConfigError(f"{reader.where}: {reader.at('name')} is missing; it is one of {', '.join(CONNECTOR_CLASSES)}.")
    if name not in CONNECTOR_CLASSES:
        raise ConfigError(f"{reader.where}: {reader.path}: {choose('connector', name, CONNECTOR_CLASSES)}")
    extra = reader.mapping("extra")
    return ConnectorSpec(name, dict(extra.data) if extra is not None else {})


def read_codec(reader: Reader, notes: list[str]) -> CodecConnector:
    """Chunking keys of an `extra` block; other keys are left alone.

    Values that the server puts right by itself are put right here as well, each with a sentence appended to `notes`.
    Raises ConfigError on wrong types and on the ranges of contract 3.2.
    """
    chunk = reader.integer("codec_chunk_frames", 25, minimum=1) or 25
    left = reader.integer("codec_left_context_frames", minimum=0)
    left = 25 if left is None else left
    initial = reader.integer("initial_codec_chunk_frames", 0, minimum=0) or 0
    if initial > chunk:
        notes.append(f"initial_codec_chunk_frames {initial} is above codec_chunk_frames {chunk} and is lowered to it")
        initial = chunk
    return CodecConnector(
        codec_chunk_frames=chunk,
        codec_left_context_frames=left,
        initial_codec_chunk_frames=initial,
        # 0 counts as absent at the server too: only a positive value replaces the left context.
        ref_code_context_frames=reader.integer("ref_code_context_frames", minimum=0) or left,
        codec_chunk_ramp=_ramp(reader, chunk, notes),
        codec_chunk_adaptive=reader.boolean("codec_chunk_adaptive", False),
        codec_chunk_min_frames=_at_least_one(reader, notes, "codec_chunk_min_frames", 2),
        codec_chunk_safety_margin_ms=reader.number("codec_chunk_safety_margin_ms", 50.0),
        codec_chunk_ramp_divisor=_at_least_one(reader, notes, "codec_chunk_ramp_divisor", 15),
        codec_chunk_ramp_delta_min=_at_least_one(reader, notes, "codec_chunk_ramp_delta_min", 2),
        ref_audio_artifact_cache_max_entries=reader.integer("ref_audio_artifact_cache_max_entries", 1024, minimum=0) or 0,
        decode_chunk_frames=reader.integer("decode_chunk_frames", 300, minimum=1) or 300,
        decode_left_context_frames=reader.integer("decode_left_context_frames", 25, minimum=0) or 0,
    )


def _at_least_one(reader: Reader, notes: list[str], key: str, default: int) -> int:
    value = reader.integer(key)
    if value is None:
        return default
    if value < 1:
        notes.append(f"{key} {value} is below 1 and is raised to it")
    return max(1, value)


def _ramp(reader: Reader, chunk: int, notes: list[str]) -> tuple[int, ...]:
    """codec_chunk_ramp (contract 3.5): a list or comma string. One that cannot work is switched off, as at the server."""
    value = reader.raw("codec_chunk_ramp")
    if value is None:
        return ()
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list):
        raise reader.fault("codec_chunk_ramp", "a list of whole numbers or a comma-separated text", value)
    try:
        ramp = tuple(int(item) for item in items)
    except (TypeError, ValueError):
        notes.append(f"codec_chunk_ramp {value!r} is switched off: an entry is not a whole number")
        return ()
    if len(ramp) < 2 or min(ramp) <= 0:
        notes.append(f"codec_chunk_ramp {value!r} is switched off: it needs two entries or more, all above 0")
        return ()
    if ramp[-1] != chunk:
        notes.append(
            f"codec_chunk_ramp ends with {ramp[-1]}, not codec_chunk_frames {chunk}: the chunk size jumps after the ramp"
        )
    return ramp
