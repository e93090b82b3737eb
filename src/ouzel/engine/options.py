"""How an engine behaves, as a value."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ouzel.engine.stuck import StuckPolicy
from ouzel.errors import ConfigError


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """high_water_s: the talker pauses while more than this many seconds are decoded but not taken, or shipped but not decoded.
    max_active: utterances that are spoken at once, a frame each in turn; further ones wait, unless all of these are paused for
        their listeners and somebody waits for the next chunk of another.
    max_waiting: utterances that may wait; one more is an error, not a longer queue.
    step_batch: talker states given to one `step` call. 1 keeps a failing step from touching its neighbours.
    fade_in_s: fade at the start of each segment. A fresh decoder state begins with a step of about -41 dBFS, heard as a click;
        5 ms hide it, and no sample after the fade is touched. 0 gives the decoder's samples unchanged.
    stall_timeout_s: a consumer that waits while no worker finishes anything for this long has its utterance ended with an error
        (the server's input wait is 600 s too).
    max_num_seqs: capacity in the dynamic initial chunk (contract 3.3). One stream of one would choose the largest first chunk,
    so it is
        the server's 64 unless the deploy file says otherwise.
    """

    high_water_s: float = 2.0
    max_active: int = 8
    max_waiting: int = 64
    step_batch: int = 1
    fade_in_s: float = 0.005
    stall_timeout_s: float = 600.0
    max_num_seqs: int = 64
    stuck: StuckPolicy = field(default_factory=StuckPolicy)

    def __post_init__(self) -> None:
        for name in ("high_water_s", "stall_timeout_s"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ConfigError(f"{name} must be a positive number of seconds, not {value!r}.")
        if not 0 <= self.fade_in_s <= 1:
            raise ConfigError(f"fade_in_s must be between 0 and 1 second, not {self.fade_in_s!r}.")
        for name in ("max_active", "max_waiting", "step_batch"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)!r}.")
