"""What a client asks for, checked as far as that goes without the model."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Literal

from ouzel.request import SpeechRequest
from ouzel.serve.likeness import Likeness

Delivery = Literal["whole", "audio", "sse"]


def new_id() -> str:
    return f"req-{uuid.uuid4().hex}"


@dataclass(slots=True)
class Order:
    """One utterance for one client.

    route: for log and metrics. format, sample_rate: of the response; None is the model's own rate. delivery: all at once, as it
    is made, or as events. likeness: whom to imitate, which is still to be looked into; reference_s: how long that took.
    warnings: what the client should be told although it gets its audio.
    """

    request: SpeechRequest
    route: str
    format: str = "pcm"
    sample_rate: int | None = None
    delivery: Delivery = "audio"
    likeness: Likeness | None = None
    reference_s: float | None = None
    warnings: list[str] = field(default_factory=list)
    id: str = field(default_factory=new_id)
