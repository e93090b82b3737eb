"""From a request to what the engine speaks: checked options, pieces of text, sampling and seeds. No thread, no model."""

from __future__ import annotations

import math
import numbers
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ouzel.adapters import TalkerSampling
from ouzel.engine import Segment, segment_seed
from ouzel.errors import UsageError, choose
from ouzel.models.base import Frontend
from ouzel.request import SpeechRequest
from ouzel.text import prepare, split_budget

OPTIONS = tuple(f.name for f in fields(SpeechRequest) if f.name != "text")
_NUMBERS = ("temperature", "top_p", "speed")
_WHOLES = ("top_k", "max_new_tokens", "initial_codec_chunk_frames", "seed")
MAX_NEW_TOKENS = 4096  # contract 5.4


@dataclass(frozen=True, slots=True)
class TextOptions:
    """strip: take out markdown and emoji. normalise: write out what a voice would misread.

    segment_tokens: longest piece spoken in one go; None = the model's own limit.
    """

    strip: bool = True
    normalise: bool = True
    segment_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What `Engine.submit` takes.

    max_frames: of all segments together, None if each has its own limit only. text_tokens: ids of the text in all segments.
    """

    request: SpeechRequest
    segments: tuple[Segment, ...]
    seed: int
    max_frames: int | None
    warnings: tuple[str, ...] = ()
    text_tokens: int = 0


def make_request(text: str | SpeechRequest, options: Mapping[str, Any]) -> SpeechRequest:
    """A request of a text with keyword options, or a request with some fields replaced. Raises UsageError for unknown names."""
    for name in options:
        if name not in OPTIONS:
            raise choose("option", name, OPTIONS)
    if isinstance(text, SpeechRequest):
        request = replace(text, **options)
    elif isinstance(text, str):
        request = SpeechRequest(text, **options)
    else:
        raise UsageError(f"The text must be a str, not {type(text).__name__}.")
    _check(request)
    return replace(request, **_plain(request))


def make_plan(request: SpeechRequest, frontend: Frontend, defaults: TalkerSampling, seed: int | None, text: TextOptions) -> Plan:
    """seed: the deploy file's, used if the request has none; without either a random one is drawn, so that it can be reported.

    Raises UsageError for text, voice, language or task that cannot be honoured.
    """
    prepared = prepare(request.text, strip=text.strip, normalise=text.normalise)
    resolved = frontend.resolve(replace(request, text=prepared.text))
    key = next((s for s in (request.seed, seed) if s is not None), None)
    if key is None:
        key = secrets.randbits(63)
    notes = frontend.review(prepared.text)
    longest = frontend.segment_tokens if text.segment_tokens is None else text.segment_tokens

    def count(piece: str) -> int:
        return frontend.count_tokens(piece, resolved)

    # A piece may be all of what the model leaves out.
    pieces = [(piece, tokens) for piece in split_budget(prepared.text, count, longest) if (tokens := count(piece))]
    segments = tuple(_segment(resolved, frontend, defaults, key, i, *piece) for i, piece in enumerate(pieces))
    limit = request.max_new_tokens
    # One segment counts its own ids, the end included; several share the frames that are left of the limit.
    shared = max(1, limit - 1) if limit is not None and len(segments) > 1 else None
    total = sum(tokens for _, tokens in pieces)
    return Plan(resolved, segments, key, shared, (*prepared.warnings, *notes), total)


def _segment(
    request: SpeechRequest, frontend: Frontend, defaults: TalkerSampling, seed: int, index: int, piece: str, tokens: int
) -> Segment:
    limit = frontend.frame_budget(tokens, defaults.max_tokens, request.max_new_tokens)
    # A topology names the published models' end id; an id that this model lacks never comes.
    stops = {i for i in defaults.stop_token_ids if i < frontend.codec_ids} | {frontend.stop_token_id}
    sampling = replace(
        defaults,
        temperature=_first(request.temperature, defaults.temperature),
        top_k=_first(request.top_k, defaults.top_k),
        top_p=_first(request.top_p, defaults.top_p),
        max_tokens=limit,
        min_tokens=min(defaults.min_tokens, limit),
        stop_token_ids=tuple(sorted(stops)),
        seed=segment_seed(seed, index),
    )
    return Segment(
        rows=lambda: frontend.rows(request, piece),
        sampling=sampling.greedy() if request.greedy else sampling,
        reference_codes=request.ref_codes,
    )


def _first(asked: Any, default: Any) -> Any:
    return default if asked is None else asked


def _check(request: SpeechRequest) -> None:
    _number("temperature", request.temperature, 0.0, 100.0)
    _number("top_p", request.top_p, 0.0, 1.0, above=True)
    _number("speed", request.speed, 0.25, 4.0)
    _whole("top_k", request.top_k, 0, None)
    _whole("max_new_tokens", request.max_new_tokens, 1, MAX_NEW_TOKENS)
    _whole("initial_codec_chunk_frames", request.initial_codec_chunk_frames, 0, None)
    _whole("seed", request.seed, None, None)
    for name in ("voice", "language", "instructions", "task_type", "ref_text"):
        value = getattr(request, name)
        if value is not None and not isinstance(value, str):
            raise UsageError(f"{name} must be a text, not {value!r}.", param=name)
    for name in ("greedy", "non_streaming_mode"):
        value = getattr(request, name)
        if value is not None and not isinstance(value, bool):
            raise UsageError(f"{name} must be True or False, not {value!r}.", param=name)


def _plain(request: SpeechRequest) -> dict[str, Any]:
    """The numbers of a request as Python's own: numpy's overflow where 64-bit keys are computed."""
    given: dict[str, Any] = {}
    kinds: tuple[tuple[type, tuple[str, ...]], ...] = ((float, _NUMBERS), (int, _WHOLES))
    for kind, names in kinds:
        given |= {name: kind(value) for name in names if (value := getattr(request, name)) is not None}
    return given


def _number(name: str, value: Any, low: float, high: float, *, above: bool = False) -> None:
    if value is None:
        return
    good = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if not good or not (low < value if above else low <= value) or value > high:
        limits = f"{'above' if above else 'from'} {low:g} and at most {high:g}"
        raise UsageError(f"{name} must be a number {limits}, not {value!r}.", param=name)


def _whole(name: str, value: Any, low: int | None, high: int | None) -> None:
    if value is None:
        return
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise UsageError(f"{name} must be a whole number, not {value!r}.", param=name)
    if (low is not None and int(value) < low) or (high is not None and int(value) > high):
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        raise UsageError(f"{name} must be {limits}, not {value!r}.", param=name)
