"""What an utterance is spoken with."""

from __future__ import annotations

from dataclasses import dataclass, field

from ouzel.adapters import DecoderAdapter, TalkerAdapter
from ouzel.schedule import SpeedEstimator


@dataclass(frozen=True, slots=True)
class Stages:
    """A talker and a decoder, and how fast they were found to be together. An utterance keeps the ones it began with."""

    talker: TalkerAdapter
    decoder: DecoderAdapter
    speed: SpeedEstimator = field(default_factory=SpeedEstimator)
