"""One utterance on its way to one client."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from ouzel.api.plan import Plan
from ouzel.audio.pcm import Samples
from ouzel.audio.resample import Downsampler
from ouzel.audio.tempo import Tempo
from ouzel.engine import Utterance
from ouzel.engine.metrics import UtteranceMetrics
from ouzel.errors import ClosedError, SynthesisError, UsageError

BLOCK_S = 0.25  # longest piece that an encoder gets at once, so that it does not keep other clients waiting
AUDIBLE_DBFS = -55.0  # the engine's own line between speech and silence (StuckPolicy)
WINDOW_S = 0.01
_FLOOR = 10.0 ** (AUDIBLE_DBFS / 20.0)


class Take:
    """Iterate it for float32 blocks; the first block comes when there is something to hear.

    Before the first block every failure raises (OuzelError), all-silent speech included, so that a client can still be told in
    place of audio; what was silent before is in the blocks. timeout_s: how long to wait for the engine, all blocks together.
    block_s: longest block, None: as the engine's chunks come. tempo: changes the pace of a model that sets its own.
    """

    def __init__(
        self,
        plan: Plan,
        utterance: Utterance,
        *,
        sample_rate: int | None,
        timeout_s: float,
        block_s: float | None = None,
        tempo: Tempo | None = None,
    ) -> None:
        self.plan = plan
        self.utterance = utterance
        self.sample_rate = utterance.sample_rate if sample_rate is None else sample_rate
        self.delivered_s = 0.0
        shaping = (tempo, _downsampler(utterance.sample_rate, self.sample_rate))
        self._shaping = [part for part in shaping if part is not None]  # one after the other
        self._left_s = self._timeout_s = timeout_s
        self._block = None if block_s is None else max(1, round(block_s * self.sample_rate))
        self._blocks: deque[Samples] = deque()
        self._held: list[Samples] | None = []  # until the first sound
        self._ended = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Samples:
        # Neither taking a chunk nor sending one need ever wait: without this, an engine that is faster than an encoder would
        # keep the loop from everybody else, and from noticing that the client has gone.
        await asyncio.sleep(0)
        while not self._blocks:
            if self._ended:
                raise StopAsyncIteration
            await self._next_chunk()
        block = self._blocks.popleft()
        self.delivered_s += len(block) / self.sample_rate
        return block

    async def first(self) -> Samples:
        """The first block. Raises SynthesisError if there is none."""
        return await anext(self)

    async def _next_chunk(self) -> None:
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._left_s):
                chunk = await anext(self.utterance, None)
        except TimeoutError:
            raise SynthesisError(f"The speech was not ready within {self._timeout_s:g} s; the request was ended.") from None
        finally:
            self._left_s -= time.monotonic() - began
        if chunk is None:
            self._ended = True
            if self.finish_reason == "cancelled":  # by somebody else than this client
                raise ClosedError("The speech was stopped, since the server is stopping.")
            if self._held is not None:
                raise SynthesisError("The model made nothing that can be heard; try another seed, voice or text.")
            for index, part in enumerate(self._shaping):
                self._give(await self._shaped(await _aside(part, part.flush), index + 1))
            return
        samples = chunk.samples
        if self._held is not None:
            self._held.append(samples)
            if not _audible(samples, chunk.sample_rate):
                return
            samples, self._held = np.concatenate(self._held), None
        self._give(await self._shaped(samples))

    async def _shaped(self, samples: Samples, first: int = 0) -> Samples:
        for part in self._shaping[first:]:
            samples = await _aside(part, part.feed, samples)
        return samples

    def _give(self, samples: Samples) -> None:
        size = self._block or max(1, len(samples))
        self._blocks.extend(samples[at : at + size] for at in range(0, len(samples), size))

    # ---- how it went

    @property
    def metrics(self) -> UtteranceMetrics:
        return self.utterance.metrics

    @property
    def finish_reason(self) -> str:
        return self.utterance.finish_reason or "unfinished"

    @property
    def usage(self) -> dict[str, Any]:
        """Token counts as the server reports them: text ids in, talker ids out with the end id of each segment."""
        text, reference = self.plan.text_tokens, self.plan.request.ref_codes
        audio = 0 if reference is None else len(reference)
        out = self.metrics.frames + len(self.plan.segments)
        details = {"text_tokens": text, "audio_tokens": audio}
        total = text + audio
        return {"input_tokens": total, "output_tokens": out, "total_tokens": total + out, "input_token_details": details}


async def _aside(part: Tempo | Downsampler, work: Callable[..., Samples], *given: Samples) -> Samples:
    """The result; a change of pace, which takes up to 70 ms of a second of sound, in a thread: the loop has other clients."""
    return await asyncio.to_thread(work, *given) if isinstance(part, Tempo) else work(*given)


def check_rate(wanted: int | None, own: int) -> None:
    """Raises UsageError for a sample rate that is neither the model's nor 8 kHz (contract 8.2)."""
    if wanted is not None:
        _downsampler(own, wanted)


def _downsampler(own: int, wanted: int) -> Downsampler | None:
    if wanted == own:
        return None
    valid = [rate for rate in (8000,) if rate < own and own % rate == 0]
    if wanted not in valid:
        names = " or ".join(map(str, [*valid, own]))
        raise UsageError(f"sample_rate must be {names} with this model, not {wanted}.", param="sample_rate")
    return Downsampler(own // wanted)


def _audible(samples: Samples, sample_rate: int) -> bool:
    """Whether 10 ms of it are above the floor."""
    window = max(1, round(WINDOW_S * sample_rate))
    whole = len(samples) // window * window
    if whole == 0:
        return bool(len(samples)) and float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) > _FLOOR
    power = np.mean(np.square(samples[:whole], dtype=np.float64).reshape(-1, window), axis=1)
    return bool(power.max() > _FLOOR**2)
