"""What schedule to follow: a value, from a flag, from YAML or from code."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ouzel.errors import ConfigError, UsageError, choose
from ouzel.schedule.adaptive import AdaptiveKnobs, AdaptiveRun
from ouzel.schedule.auto import AutoRun
from ouzel.schedule.fixed import FixedRun, dynamic_initial
from ouzel.schedule.full import FullRun
from ouzel.schedule.ramp import RampRun
from ouzel.schedule.run import ScheduleRun
from ouzel.schedule.speed import SpeedModel

logger = logging.getLogger(__name__)

Kind = Literal["fixed", "ramp", "adaptive", "auto", "full"]
KINDS: tuple[Kind, ...] = get_args(Kind)
FORMS = ("fixed", "fixed:CHUNK", "fixed:FIRST/CHUNK", "ramp:N,N,…", "ramp:N,N,…/CHUNK", "adaptive", "auto", "auto:CHUNK", "full")
CONNECTOR_KEYS = (
    "codec_chunk_frames",
    "initial_codec_chunk_frames",
    "codec_chunk_ramp",
    "codec_chunk_adaptive",
    "codec_chunk_min_frames",
    "codec_chunk_safety_margin_ms",
    "codec_chunk_ramp_divisor",
    "codec_chunk_ramp_delta_min",
)


@dataclass(frozen=True, slots=True)
class ScheduleSpec:
    """A schedule, all sizes in codec frames of 80 ms.

    chunk_frames: the size chunks settle at. initial_frames: first chunk of "fixed"; None or 0 = by load (contract 3.3).
    ramp: sizes of the first chunks of "ramp". min_frames, ramp_divisor, delta_min: "adaptive" only (contract 3.6).
    safety_margin_ms: "adaptive" and "auto": how long before the audio runs out a chunk should be there.
    Raises ConfigError on values that no schedule can follow or that the kind does not use.
    """

    kind: Kind = "fixed"
    chunk_frames: int = 25
    initial_frames: int | None = None
    ramp: tuple[int, ...] = ()
    min_frames: int = 2
    safety_margin_ms: float = 50
    ramp_divisor: int = 15
    delta_min: int = 2

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise choose("schedule kind", self.kind, KINDS, error=ConfigError)
        for name in ("chunk_frames", "min_frames", "ramp_divisor", "delta_min"):
            value = getattr(self, name)
            if not _is_int(value) or value < 1:
                raise ConfigError(f"Schedule {name} must be a whole number from 1, got {value!r}.")
        if not isinstance(self.safety_margin_ms, (int, float)) or not 0 <= self.safety_margin_ms < float("inf"):
            raise ConfigError(f"Schedule safety_margin_ms must be 0 or more milliseconds, got {self.safety_margin_ms!r}.")
        self._check_initial()
        self._check_ramp()

    def _check_initial(self) -> None:
        if self.initial_frames is None:
            return
        if self.kind != "fixed":
            raise ConfigError(f"initial_frames belongs to the fixed schedule; {self.kind} chooses its own first chunk.")
        if not _is_int(self.initial_frames) or not 0 <= self.initial_frames <= self.chunk_frames:
            raise ConfigError(
                f"initial_frames must be between 0 (by load) and chunk_frames ({self.chunk_frames}), got {self.initial_frames!r}."
            )

    def _check_ramp(self) -> None:
        if self.kind != "ramp":
            if self.ramp:
                raise ConfigError(f"A ramp table belongs to the ramp schedule, not to {self.kind}.")
            return
        if not isinstance(self.ramp, tuple) or len(self.ramp) < 2 or not all(_is_int(n) and n > 0 for n in self.ramp):
            raise ConfigError(f"A ramp needs two or more positive sizes such as 4,4,8,16,25, got {self.ramp!r}.")

    @classmethod
    def parse(cls, text: str) -> ScheduleSpec:
        """Read a flag value; the forms are in `FORMS`. A ramp without /CHUNK settles at its last size. Raises ConfigError."""
        name, colon, rest = text.strip().partition(":")
        kind = next((k for k in KINDS if k == name), None)
        if kind is None:
            raise choose("schedule", name, FORMS, error=ConfigError)
        if colon and (kind == "full" or not rest):
            raise choose("schedule", text, FORMS, error=ConfigError)
        if kind == "ramp":
            head, slash, chunk = rest.partition("/")
            sizes = tuple(_parse_int(text, part) for part in head.split(",")) if head else ()
            return cls("ramp", chunk_frames=_parse_int(text, chunk) if slash else (sizes or (25,))[-1], ramp=sizes)
        if not colon:
            return cls(kind)
        first, slash, chunk = rest.partition("/")
        if not slash:
            return cls(kind, chunk_frames=_parse_int(text, first))
        if kind != "fixed":
            raise choose("schedule", text, FORMS, error=ConfigError)
        return cls(kind, chunk_frames=_parse_int(text, chunk), initial_frames=_parse_int(text, first))

    @classmethod
    def from_connector(
        cls,
        *,
        codec_chunk_frames: int = 25,
        initial_codec_chunk_frames: int | None = 0,
        codec_chunk_ramp: str | Sequence[int] | None = None,
        codec_chunk_adaptive: bool = False,
        codec_chunk_min_frames: int = 2,
        codec_chunk_safety_margin_ms: float = 50.0,
        codec_chunk_ramp_divisor: int = 15,
        codec_chunk_ramp_delta_min: int = 2,
    ) -> ScheduleSpec:
        """The spec a deploy file's connector means, with the server's precedence (adaptive, ramp, initial) and its leniency:
        an unusable ramp, values below their minimum and an initial chunk beyond the chunk are put right with a warning."""
        chunk = _to_int("codec_chunk_frames", codec_chunk_frames)
        initial = _to_int("initial_codec_chunk_frames", initial_codec_chunk_frames or 0)
        if chunk <= 0 or initial < 0:
            raise ConfigError(
                f"codec_chunk_frames must be positive and initial_codec_chunk_frames not negative, got {chunk} and {initial}."
            )
        ramp = _lenient_ramp(codec_chunk_ramp, chunk)
        if codec_chunk_adaptive:
            return cls(
                "adaptive",
                chunk_frames=chunk,
                min_frames=_at_least_one("codec_chunk_min_frames", codec_chunk_min_frames),
                safety_margin_ms=float(codec_chunk_safety_margin_ms),
                ramp_divisor=_at_least_one("codec_chunk_ramp_divisor", codec_chunk_ramp_divisor),
                delta_min=_at_least_one("codec_chunk_ramp_delta_min", codec_chunk_ramp_delta_min),
            )
        if ramp:
            return cls("ramp", chunk_frames=chunk, ramp=ramp)
        return cls("fixed", chunk_frames=chunk, initial_frames=_clamp_initial(initial, chunk))

    def start(
        self,
        *,
        request_initial: int | None = None,
        active: int = 1,
        max_num_seqs: int = 64,
        speed: SpeedModel | None = None,
        expected_frames: int | None = None,
    ) -> ScheduleRun:
        """A fresh run for one segment.

        request_initial: the request's initial_codec_chunk_frames; overrides "fixed" and "auto" (0 = no initial chunk), and is
        ignored by the others as on the server. active of max_num_seqs: load for the choice of the first chunk, active being the
        requests that hold frames when this one starts. (Seen on the server: it asks at the prefill, so the new request is not
        among them and an idle one of capacity 1 starts with 2.) speed, expected_frames (a guess of the length): "auto" only.
        Raises UsageError.
        """
        if request_initial is not None and request_initial < 0:
            raise UsageError(f"initial_codec_chunk_frames must be 0 (no initial chunk) or more, got {request_initial}.")
        chunk = self.chunk_frames
        if self.kind == "ramp":
            return RampRun(self.ramp, chunk)
        if self.kind == "full":
            return FullRun()
        asked = None if request_initial is None else _clamp_initial(request_initial, chunk)
        if self.kind == "auto":
            first = asked if asked is None or asked > 0 else chunk
            return AutoRun(chunk, self.safety_margin_ms, speed=speed, first=first, expected_frames=expected_frames)
        by_load = dynamic_initial(chunk, active, max_num_seqs)
        if self.kind == "adaptive":
            knobs = AdaptiveKnobs(self.min_frames, self.safety_margin_ms, self.ramp_divisor, self.delta_min)
            return AdaptiveRun(chunk, by_load, knobs)
        return FixedRun(chunk, asked if asked is not None else (self.initial_frames or by_load))

    def __str__(self) -> str:
        """The flag form; `parse` reads it back (adaptive's tuning and the margin have no flag form)."""
        if self.kind == "full":
            return "full"
        if self.kind == "ramp":
            sizes = ",".join(map(str, self.ramp))
            return f"ramp:{sizes}" if self.ramp[-1] == self.chunk_frames else f"ramp:{sizes}/{self.chunk_frames}"
        first = f"{self.initial_frames}/" if self.initial_frames else ""
        return f"{self.kind}:{first}{self.chunk_frames}"


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _parse_int(text: str, part: str) -> int:
    try:
        return int(part)
    except ValueError:
        raise choose("schedule", text, FORMS, error=ConfigError) from None


def _to_int(name: str, value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ConfigError(f"{name} must be a whole number, got {value!r}.") from None


def _at_least_one(name: str, value: object) -> int:
    number = _to_int(name, value)
    if number < 1:
        logger.warning("%s must be 1 or more; %d is read as 1.", name, number)
    return max(1, number)


def _clamp_initial(initial: int, chunk: int) -> int:
    if initial > chunk:
        logger.warning(
            "initial_codec_chunk_frames %d is larger than codec_chunk_frames %d, which is used instead.", initial, chunk
        )
    return min(initial, chunk)


def _lenient_ramp(value: str | Sequence[int] | None, chunk: int) -> tuple[int, ...]:
    if value is None:
        return ()
    try:
        ramp = tuple(int(part) for part in (value.split(",") if isinstance(value, str) else value))
    except (TypeError, ValueError):
        ramp = ()
    if len(ramp) < 2 or min(ramp) < 1:
        logger.warning("codec_chunk_ramp %r is not a list of two or more positive sizes and stays off.", value)
        return ()
    if ramp[-1] != chunk:
        logger.warning("codec_chunk_ramp ends at %d, but chunks go on at codec_chunk_frames %d.", ramp[-1], chunk)
    return ramp
