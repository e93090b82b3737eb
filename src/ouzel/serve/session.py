"""WebSocket /v1/audio/speech/stream: text in as it comes, sentences of audio out, in order (contract 8.6).

The socket is read while audio is made, so that `input.cancel` and a client that leaves are noticed at once. Texts that arrive
meanwhile are queued, and so are answers to messages that were wrong, so that a client that knows only the server's messages sees
the server's sequence.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, cast

from starlette.websockets import WebSocket, WebSocketDisconnect

from ouzel.audio.encoder import open_encoder
from ouzel.errors import OuzelError, UsageError
from ouzel.serve import messages as m
from ouzel.serve.api_error import ApiError
from ouzel.serve.desk import Desk
from ouzel.serve.likeness import Likeness
from ouzel.serve.schema import SessionConfig
from ouzel.text import Splitter

log = logging.getLogger("ouzel.serve")
CLOSED_NORMALLY, CLOSED_BY_RULE = 1000, 1008


@dataclass(frozen=True, slots=True)
class _Job:
    """What the speaking half has to do, in order: speak a text, say what was wrong, close; else the utterance is complete."""

    utterance: int
    text: str | None = None
    config: SessionConfig | None = None
    problem: Exception | None = None
    close: bool = False


class Session:
    """One connection. The reading half fills `_jobs`, the speaking half empties it."""

    def __init__(self, desk: Desk, socket: WebSocket) -> None:
        self._desk = desk
        self._settings = desk.settings
        self._socket = socket
        self._id: str = socket.state.request_id
        self._config: SessionConfig | None = None
        self._splitter = Splitter("none")
        self._open = False  # text of the utterance has arrived and its end has not
        self._utterance = 0  # the one that arriving text belongs to
        self._jobs: deque[_Job] = deque()
        self._work = asyncio.Event()
        self._speech: asyncio.Task[None] | None = None
        self._at = (0, 0)  # utterance and sentence that are being spoken, or come next
        self._sent = 0  # bytes of audio of the sentence
        self._likeness: Likeness | None = None  # of the latest sentence, with what its recording became
        self._active_at = time.monotonic()

    async def run(self) -> None:
        await self._socket.accept()
        speaking = asyncio.create_task(self._speak())
        reading = asyncio.create_task(self._read())
        try:
            await asyncio.wait({speaking, reading}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            tasks = [task for task in (speaking, reading, self._speech) if task is not None]
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception) and not isinstance(end, WebSocketDisconnect):
                raise end

    # ---- reading

    async def _read(self) -> None:
        while True:
            try:
                data = await self._receive()
            except TimeoutError:
                wait = self._settings.session_config_s if self._config is None else self._settings.session_idle_s
                await self._end(f"No {'session.config' if self._config is None else 'message'} came for {wait:g} s.")
                return
            self._active_at = time.monotonic()
            try:
                message = m.parse(data, self._settings.max_body_bytes)
                if self._config is None and message["type"] != m.CONFIG:
                    raise UsageError("The first message must be session.config.")
                if not await self._handle(message):
                    return
            except (OuzelError, ApiError) as error:
                if self._config is None:
                    await self._end(str(error))
                    return
                self._put(_Job(self._utterance, problem=error))
            if len(self._jobs) > self._settings.max_input_chars:
                await self._end("Too many messages wait to be answered.")
                return

    async def _receive(self) -> str | None:
        """The next message, None for a binary one. Raises TimeoutError, WebSocketDisconnect."""
        settings = self._settings
        while True:
            limit = settings.session_config_s if self._config is None else settings.session_idle_s
            left = limit if self._busy else limit - (time.monotonic() - self._active_at)
            try:
                async with asyncio.timeout(max(left, 0)):
                    event = await self._socket.receive()
            except TimeoutError:
                if self._busy or time.monotonic() - self._active_at < limit:
                    continue  # it was not the client who was silent
                raise
            if event["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(event.get("code", 1005))
            return cast("str | None", event.get("text"))

    @property
    def _busy(self) -> bool:
        return bool(self._jobs) or self._speech is not None

    async def _handle(self, message: dict[str, Any]) -> bool:
        """False: nothing more is read."""
        kind = message["type"]
        if kind == m.CONFIG:
            self._configure(message)
        elif kind == m.TEXT:
            self._take_text(m.text_of(message))
        elif kind == m.DONE:
            self._queue_all(self._splitter.flush())
            self._put(_Job(self._utterance))
            self._next_utterance()
        elif kind == m.CANCEL:
            await self._cancel(message)
        else:
            self._put(_Job(self._utterance, close=True))
            # Until the speaking half has closed the session, or the client has gone.
            while (await self._socket.receive())["type"] != "websocket.disconnect":
                pass
            return False
        return True

    def _configure(self, message: dict[str, Any]) -> None:
        if self._open:
            raise UsageError("session.config cannot change while an utterance is open; send input.done first.")
        config = m.config_of(message, self._settings, self._desk.voice.name)
        if config.model_extra:
            log.info("id=%s unknown fields of session.config: %s", self._id, ", ".join(sorted(config.model_extra))[:500])
        self._config = config
        self._splitter = Splitter(config.split_granularity)

    def _take_text(self, text: str) -> None:
        if not text:
            return
        waiting = sum(len(job.text or "") for job in self._jobs)
        if waiting + len(text) > self._settings.max_input_chars:
            raise UsageError(f"More than {self._settings.max_input_chars:,} characters wait to be spoken; this text was dropped.")
        self._open = True
        self._queue_all(self._splitter.feed(text))

    def _queue_all(self, sentences: list[str]) -> None:
        for sentence in sentences:
            self._put(_Job(self._utterance, sentence, self._config))

    def _put(self, job: _Job) -> None:
        self._jobs.append(job)
        self._work.set()

    def _next_utterance(self) -> None:
        self._open = False
        self._utterance += 1

    async def _cancel(self, message: dict[str, Any]) -> None:
        """Silence: the sentence is ended, what waits is dropped; the answer stands in place of each session.done still due."""
        utterance, sentence = self._at
        self._jobs = deque(job for job in self._jobs if job.problem is not None)
        self._splitter.flush()
        speech, sent = self._speech, self._sent
        if speech is not None:
            speech.cancel()
            await asyncio.gather(speech, return_exceptions=True)
        if self._open:
            self._next_utterance()
        self._at = (self._utterance, 0)
        answer = {"type": "audio.cancelled", "utterance_index": utterance, "sentence_index": sentence, "reason": "client_cancel"}
        if speech is not None:
            answer["sent_bytes"] = sent
        played = message.get("played_ms")
        if isinstance(played, int | float) and not isinstance(played, bool):
            answer["played_ms"] = played
        await self._socket.send_json(answer)

    async def _end(self, reason: str) -> None:
        await self._socket.send_json({"type": "error", "message": reason})
        await self._socket.close(CLOSED_BY_RULE, reason[:100])

    # ---- speaking

    async def _speak(self) -> None:
        while True:
            while not self._jobs:
                self._work.clear()
                await self._work.wait()
            job = self._jobs.popleft()
            utterance, sentence = self._at
            if job.close:
                await self._socket.close(CLOSED_NORMALLY)
                return
            if job.problem is not None:
                await self._socket.send_json(m.error_message(job.problem))
            elif job.text is None:
                self._at = (job.utterance + 1, 0)
                await self._socket.send_json(
                    {"type": "session.done", "utterance_index": job.utterance, "total_sentences": sentence}
                )
            elif job.config is not None:
                self._speech = asyncio.create_task(self._sentence(job.text, job.config))
                # Not awaited itself: `input.cancel` cancels it, and this loop goes on.
                await asyncio.wait({self._speech})
                speech, self._speech = self._speech, None
                if not speech.cancelled():
                    speech.result()
                    self._at = (utterance, sentence + 1)
            self._active_at = time.monotonic()

    async def _sentence(self, text: str, config: SessionConfig) -> None:
        socket = self._socket
        utterance, sentence = self._at
        where = {"utterance_index": utterance, "sentence_index": sentence}
        self._sent = 0
        failed = False
        if config.word_timestamps:
            await socket.send_json(m.error_message(m.no_timestamps()))
            return

        async def give(data: bytes) -> None:
            if data:
                self._sent += len(data)
                await socket.send_bytes(data)

        try:
            start: dict[str, Any] = {"type": "audio.start", **where, "sentence_text": text, "format": m.format_of(config)}
            if config.stream_audio:
                start["sample_rate"] = config.sample_rate or self._desk.voice.sample_rate
            await socket.send_json(start)
            order = m.sentence_order(text, config, self._settings, self._desk.model)
            if order.likeness is not None:
                order.likeness = self._likeness = order.likeness.remembered(self._likeness)
            order.id = f"{self._id}.{utterance}.{sentence}"
            async with self._desk.take(order) as take:
                with open_encoder(order.format, take.sample_rate, streamed=config.stream_audio) as encoder:
                    if config.stream_audio:
                        await give(encoder.header())
                        async for block in take:
                            await give(encoder.encode(block))
                        await give(encoder.finish())
                    else:
                        parts = [encoder.encode(block) async for block in take]
                        await give(b"".join([*parts, encoder.finish()]))
        except WebSocketDisconnect:
            raise
        except Exception as error:
            failed = True
            await socket.send_json(m.error_message(error, self._sent))
        await socket.send_json({"type": "audio.done", **where, "total_bytes": self._sent, "error": failed})
