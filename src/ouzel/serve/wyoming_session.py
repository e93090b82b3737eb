"""One Wyoming client: a text in, one stream of audio out.

The socket is read while audio is made, so that a client that leaves is noticed at once. What one client asks for is spoken in
order; text that comes in chunks is spoken sentence by sentence.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, replace

from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.event import Event, async_write_event
from wyoming.info import Describe
from wyoming.ping import Ping, Pong
from wyoming.tts import Synthesize, SynthesizeChunk, SynthesizeStart, SynthesizeStop, SynthesizeStopped

from ouzel.audio.pcm import to_pcm16
from ouzel.errors import OuzelError, UsageError
from ouzel.request import SpeechRequest
from ouzel.serve.api_error import ApiError
from ouzel.serve.desk import Desk
from ouzel.serve.order import Order, new_id
from ouzel.serve.wyoming_events import asked_of, clean, error_event, info_of, most_bytes, read_event, text_of
from ouzel.text import Splitter

log = logging.getLogger("ouzel.serve")
ROUTE = "wyoming"
BYTES, CHANNELS = 2, 1  # of a sample
MAX_UNSPOKEN = 1 << 14  # requests, sentences and errors that wait for one client
LAST_WORDS_S = 1.0  # at the end of a connection, for the last event to arrive


@dataclass(slots=True)
class _Reply:
    """One stream of audio. asked: what to speak with, None: nothing can be spoken; rate: of the audio-start that was sent."""

    streamed: bool
    asked: SpeechRequest | None = None
    rate: int | None = None


@dataclass(frozen=True, slots=True)
class _Job:
    """What the speaking half has to do for a reply: speak a text, tell of an error, or, None, end it."""

    reply: _Reply
    what: str | Exception | None


class WyomingSession:
    """One connection. The reading half fills `_jobs`, the speaking half empties it."""

    def __init__(self, desk: Desk, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._desk = desk
        self._settings = desk.settings
        self._reader = reader
        self._writer = writer
        self._id = new_id()
        self._orders = 0
        self._open: _Reply | None = None  # between synthesize-start and synthesize-stop
        self._splitter = Splitter("sentence")
        self._jobs: asyncio.Queue[_Job | None] = asyncio.Queue()
        self._unspoken = 0  # jobs
        self._unspoken_chars = 0
        self._active_at = time.monotonic()

    async def run(self) -> None:
        """Until the client has gone, is dropped, or what came before `finish` is done."""
        halves = [asyncio.create_task(half) for half in (self._read(), self._speak(), self._watch())]
        try:
            await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for half in halves:
                half.cancel()
            ends = await asyncio.gather(*halves, return_exceptions=True)
            await self._leave()
        for end in ends:
            if isinstance(end, Exception) and not isinstance(end, OSError):
                log.error("id=%s failed", self._id, exc_info=end)

    async def refuse(self) -> None:
        """One client too many."""
        try:
            await self._send(error_event(ApiError(429, "Too many clients are connected; try again later.")))
        finally:
            await self._leave()

    def finish(self) -> None:
        """What has come by now is answered to its end, an open stream included; then the connection ends."""
        self._stop()
        self._jobs.put_nowait(None)

    # ---- reading

    async def _read(self) -> None:
        most = most_bytes(self._settings.max_input_chars)
        while True:
            try:
                event = await read_event(self._reader, most)
            except UsageError as error:
                await self._send(error_event(error))
                return
            if event is None:
                return
            await asyncio.sleep(0)  # a buffer full of events would keep the loop from everybody else
            self._active_at = time.monotonic()
            await self._handle(event)
            if self._unspoken > MAX_UNSPOKEN:
                await self._send(error_event(ApiError(429, f"More than {MAX_UNSPOKEN:,} events wait to be answered.")))
                return

    async def _handle(self, event: Event) -> None:
        """Other events than these are none of ours: Home Assistant sends new ones before servers know them."""
        if Describe.is_type(event.type):
            await self._describe()
        elif Ping.is_type(event.type):
            text = event.data.get("text")
            await self._send(Pong(clean(text) if isinstance(text, str) else None).event())
        elif Synthesize.is_type(event.type):
            # In a stream it is the whole text once more, for servers that know no streams.
            if self._open is None:
                self._synthesize(event)
        elif SynthesizeStart.is_type(event.type):
            self._stop()
            self._start(event)
        elif SynthesizeChunk.is_type(event.type):
            self._chunk(event)
        elif SynthesizeStop.is_type(event.type):
            # Without a start, too: who sends it waits for the answer.
            self._open = self._open or _Reply(streamed=True)
            self._stop()

    async def _describe(self) -> None:
        try:
            answer = info_of(self._desk.voice, self._settings.voice_aliases).event()
        except ApiError as error:
            answer = error_event(error)
        await self._send(answer)

    def _synthesize(self, event: Event) -> None:
        reply = _Reply(streamed=False)
        try:
            reply.asked = self._asked(event)
            self._put(reply, self._text(event))
            self._put(reply, None)
        except (OuzelError, ApiError) as error:
            self._put(reply, error)

    def _start(self, event: Event) -> None:
        self._open = _Reply(streamed=True)
        try:
            self._open.asked = self._asked(event)
        except (OuzelError, ApiError) as error:
            self._put(self._open, error)

    def _chunk(self, event: Event) -> None:
        try:
            if self._open is None:
                raise UsageError("synthesize-chunk belongs between synthesize-start and synthesize-stop.")
            if self._open.asked is not None:
                for sentence in self._splitter.feed(self._text(event)):
                    self._put(self._open, sentence)
        except (OuzelError, ApiError) as error:
            self._put(self._open or _Reply(streamed=True), error)

    def _stop(self) -> None:
        if self._open is None:
            return
        for sentence in self._splitter.flush():
            self._put(self._open, sentence)
        self._put(self._open, None)
        self._open = None

    def _asked(self, event: Event) -> SpeechRequest:
        return asked_of(event.data, self._desk.voice, self._settings.voice_aliases)

    def _text(self, event: Event) -> str:
        text = text_of(event.data)
        most = self._settings.max_input_chars
        if self._unspoken_chars + len(text) > most:
            raise UsageError(f"More than {most:,} characters wait to be spoken; this text was dropped.")
        return text

    def _put(self, reply: _Reply, what: str | Exception | None) -> None:
        self._unspoken += 1
        self._unspoken_chars += len(what) if isinstance(what, str) else 0
        self._jobs.put_nowait(_Job(reply, what))

    # ---- speaking

    async def _speak(self) -> None:
        while (job := await self._jobs.get()) is not None:
            try:
                if isinstance(job.what, Exception):
                    raise job.what
                if job.what is None:
                    await self._end(job.reply)
                else:
                    await self._say(job.reply, job.what)
            except Exception as error:
                await self._send(error_event(error))
                if not job.reply.streamed:
                    # Home Assistant reads on until there is an audio-stop, which would make it keep what it has as the speech, or
                    # until there is no connection, which it takes for the failure that this is.
                    return
            self._unspoken -= 1
            self._unspoken_chars -= len(job.what) if isinstance(job.what, str) else 0
            self._active_at = time.monotonic()

    async def _say(self, reply: _Reply, text: str) -> None:
        if reply.asked is None:
            return
        self._orders += 1
        order = Order(replace(reply.asked, text=text), ROUTE, id=f"{self._id}.{self._orders}")
        async with self._desk.take(order) as take:
            rate = take.sample_rate
            async for block in take:
                if reply.rate is None:
                    reply.rate = rate
                    await self._send(AudioStart(rate, BYTES, CHANNELS).event())
                await self._send(AudioChunk(rate, BYTES, CHANNELS, to_pcm16(block)).event())

    async def _end(self, reply: _Reply) -> None:
        if reply.rate is not None:
            await self._send(AudioStop().event())
        if reply.streamed:
            await self._send(SynthesizeStopped().event())

    # ---- the connection

    async def _send(self, event: Event) -> None:
        """Waits for a client that reads slowly, which holds back its own speech only. Raises CancelledError once it has gone."""
        try:
            async with asyncio.timeout(self._settings.write_stall_s):
                await async_write_event(event, self._writer)
            return
        except TimeoutError:
            log.info("a client took nothing for %g s and was disconnected", self._settings.write_stall_s)
        except OSError:
            pass  # as the reading half is about to see
        self._writer.transport.abort()
        raise asyncio.CancelledError

    async def _watch(self) -> None:
        """Return when the client was silent for too long, and has nothing to wait for."""
        limit = self._settings.wyoming_idle_s
        while True:
            left = limit if self._unspoken else self._active_at + limit - time.monotonic()
            if left <= 0:
                await self._send(error_event(ApiError(408, f"No event came for {limit:g} s.")))
                return
            await asyncio.sleep(left)

    async def _leave(self) -> None:
        try:
            async with asyncio.timeout(LAST_WORDS_S):
                self._writer.write_eof()
                # With input unread the connection would be reset, and the client would not get our last event.
                while await self._reader.read(1 << 16):
                    pass
                self._writer.close()
                await self._writer.wait_closed()
        except OSError:
            pass
        finally:
            self._writer.transport.abort()
