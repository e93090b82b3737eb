"""Where every protocol orders its speech: one voice, a bounded number of takes, and the account of how they went."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from ouzel.api import Voice
from ouzel.audio.tempo import Tempo
from ouzel.engine import Live
from ouzel.errors import UsageError
from ouzel.request import SpeechRequest
from ouzel.serve.api_error import ApiError, api_error_of
from ouzel.serve.journal import FIELDS, words
from ouzel.serve.metrics import ServeMetrics
from ouzel.serve.order import Order
from ouzel.serve.recording import Recordings
from ouzel.serve.settings import ServeSettings
from ouzel.serve.take import BLOCK_S, Take, check_rate
from ouzel.serve.voicing import local_voice
from ouzel.serve.workers import Workers

log = logging.getLogger("ouzel.serve")
SPEEDS = (0.25, 4.0)  # contract 8.2
_IDLE = Live(0, 0, 0, 0, 0.0, 0)
PLAIN = ("pcm", "wav")  # need no encoder
SHORT_CHARS = 300  # planned in about a millisecond: less than it takes a busy machine to go to a thread and back
_MEMORY = 0.2  # weight of the latest request in the mean that Retry-After is made of
_LONGEST_WAIT_S = 30


class Desk:
    """One per process, used from one event loop. Empty of a voice until `open`; refuses new orders after `drain`.

    Raises UsageError where the settings name a directory that is not there.
    """

    def __init__(self, settings: ServeSettings) -> None:
        self.settings = settings
        self.metrics = ServeMetrics()
        self.workers = Workers()
        self.recordings = Recordings(settings, self.workers)
        self.draining = False
        self._voice: Voice | None = None
        self._admitted = 0
        self._takes: set[Take] = set()
        self._mean_s = 1.0
        self._quiet = asyncio.Event()
        self._quiet.set()

    # ---- life

    def open(self, voice: Voice) -> None:
        self._voice = voice

    def drain(self) -> None:
        """No new orders; what is being spoken goes on."""
        self.draining = True

    def stop(self) -> None:
        """No new orders, and silence: every take is cancelled."""
        self.drain()
        for take in tuple(self._takes):
            take.utterance.cancel()

    async def quiet(self) -> None:
        """Wait until no order is left."""
        await self._quiet.wait()

    @property
    def ready(self) -> bool:
        return self._voice is not None and not self.draining

    @property
    def voice(self) -> Voice:
        """Raises ApiError 503 while there is none, and once the server is stopping."""
        if self.draining:
            raise ApiError(503, "The server is stopping; try another one, or again later.", retry_after_s=5)
        if self._voice is None:
            raise ApiError(503, "The voice is still being loaded; try again in a few seconds.", retry_after_s=2)
        return self._voice

    @property
    def model(self) -> str:
        return "" if self._voice is None else self._voice.name

    def live(self) -> Live:
        return _IDLE if self._voice is None else self._voice.live()

    @property
    def idle(self) -> bool:
        """Whether nothing at all is left of any request: what leak checks ask."""
        return self._admitted == 0 and not self._takes and self.workers.idle and self.live().empty

    # ---- orders

    @asynccontextmanager
    async def take(self, order: Order) -> AsyncIterator[Take]:
        """Speak an order. Leaving the block, for whatever reason, ends the utterance and accounts for it.

        Raises ApiError or OuzelError before the block when the order cannot be taken.
        """
        voice = self.voice
        self._admit(order)
        began = time.monotonic()
        take: Take | None = None
        failure: BaseException | None = None
        try:
            request = self._localised(voice, order.request)
            check_rate(order.sample_rate, voice.sample_rate)
            request, tempo = _paced(request, voice)
            if order.likeness is not None:
                request = await order.likeness.give(request, voice, self.recordings, self.workers)
                order.reference_s = time.monotonic() - began
            short = len(request.text) <= SHORT_CHARS
            plan = voice.plan(request) if short else await asyncio.to_thread(voice.plan, request)
            order.warnings += plan.warnings
            utterance = voice.speak(plan)
            take = Take(
                plan,
                utterance,
                sample_rate=order.sample_rate,
                timeout_s=self.settings.synthesis_timeout_s,
                block_s=None if order.format in PLAIN else BLOCK_S,
                tempo=tempo,
            )
            self._takes.add(take)
            if self.draining:  # `stop` may have come while the request was being planned
                raise ApiError(503, "The server is stopping; try another one, or again later.", retry_after_s=5)
            yield take
        except BaseException as error:
            failure = error
            raise
        finally:
            if take is not None:
                take.utterance.cancel()
                self._takes.discard(take)
            self._admitted -= 1
            if self._admitted == 0:
                self._quiet.set()
            self._account(order, take, failure, time.monotonic() - began)

    def _admit(self, order: Order) -> None:
        settings = self.settings
        if self._admitted >= settings.concurrency + settings.queue:
            self.metrics.count("requests_refused_total")
            wait = min(_LONGEST_WAIT_S, max(1, math.ceil(self._mean_s)))
            busy = ApiError(
                429, f"{self._admitted} requests are being spoken or wait already; try again later.", retry_after_s=wait
            )
            self._account(order, None, busy, 0.0)
            raise busy
        self._admitted += 1
        self._quiet.clear()

    def _localised(self, voice: Voice, request: SpeechRequest) -> SpeechRequest:
        if len(request.text) > self.settings.max_input_chars:
            raise UsageError(
                f"The input has {len(request.text):,} characters; this server takes at most {self.settings.max_input_chars:,}.",
                param="text",
            )
        return replace(request, voice=local_voice(request.voice, voice, self.settings.voice_aliases))

    def _account(self, order: Order, take: Take | None, failure: BaseException | None, wall_s: float) -> None:
        """One line in the log for each order; without its text unless the operator wants that."""
        outcome = _outcome(failure)
        fields: dict[str, object] = {
            "id": order.id,
            "route": order.route,
            "format": order.format,
            "delivery": order.delivery,
            "chars": len(order.request.text),
            "outcome": outcome,
        }
        if order.reference_s is not None:
            fields["reference_ms"] = round(order.reference_s * 1000)
        if take is not None:
            self._mean_s += _MEMORY * (wall_s - self._mean_s)
            metrics = take.metrics
            aborted = None if outcome == "ok" else outcome.partition(":")[0]
            self.metrics.finished(metrics, wall_s, aborted=aborted, streamed=order.delivery != "whole")
            fields |= {
                "voice": take.plan.request.voice,
                "finish": metrics.finish_reason,
                "seed": take.plan.seed,
                "ttfa_ms": None if metrics.ttfa_s is None else round(metrics.ttfa_s * 1000),
                "audio_s": round(metrics.audio_s, 2),
                "rtf": round(metrics.rtf, 3),
                "underrun_ms": round(metrics.underrun_s * 1000),
            }
        fields["wall_ms"] = round(wall_s * 1000)
        if self.settings.log_text:
            fields["text"] = order.request.text
        log.info("%s", words(fields), extra={FIELDS: fields})
        if failure is not None and isinstance(failure, Exception) and api_error_of(failure).status == 500:
            log.error("id=%s failed", order.id, exc_info=failure)


def _paced(request: SpeechRequest, voice: Voice) -> tuple[SpeechRequest, Tempo | None]:
    """The request without its speed and what changes the pace in its place, for a model that sets its own."""
    speed = request.speed
    if speed is None or speed == 1 or not SPEEDS[0] <= speed <= SPEEDS[1] or voice.speeds != (1.0, 1.0):
        return request, None  # the model does it, or says what is wrong
    return replace(request, speed=None), Tempo(speed)


def _outcome(failure: BaseException | None) -> str:
    """ "ok", or why not: "cancelled" (the client has gone, or it asked for silence), "closed", "error:STATUS"."""
    if failure is None:
        return "ok"
    if isinstance(failure, (asyncio.CancelledError, GeneratorExit)):
        return "cancelled"
    found = api_error_of(failure)
    return "closed" if found.status == 503 else f"error:{found.status}"
