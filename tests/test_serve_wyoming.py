"""Wyoming: what the package `wyoming`, and Home Assistant with it, is answered."""

from __future__ import annotations

import asyncio
import io
import re
import wave
from importlib import metadata

import numpy as np
import pytest
from wyoming.audio import AudioStart
from wyoming.client import AsyncClient
from wyoming.event import Event
from wyoming.info import Describe, Info
from wyoming.ping import Ping, Pong
from wyoming.tts import Synthesize, SynthesizeChunk, SynthesizeStart, SynthesizeStop, SynthesizeVoice

from embedded_case import assert_spoken, plan, planned
from ouzel.request import VoiceInfo
from serve_case import WideDecoder
from toys import Barrier, Failing, ToyFrontend, ToyTalker
from wyoming_case import audio, errors, one_shot, seeded, shape, stream, until, wyoming_served

STREAMED = ["audio-start", "audio-chunk", "audio-stop", "synthesize-stopped"]


@pytest.fixture(scope="module")
def server():
    with seeded() as voice, wyoming_served(voice) as found:
        yield found


def spoken(server, *texts: str) -> bytes:
    return b"".join(server.desk.voice.say(text).pcm16() for text in texts)


# ---- who is there


def info_from(server) -> Info:
    (event,) = server.ask(Describe().event(), last="info")
    return Info.from_event(event)


def test_describe(server):
    (program,) = info_from(server).tts
    assert (program.name, program.installed, program.version) == ("ouzel", True, metadata.version("ouzel"))
    assert program.supports_synthesize_streaming
    assert program.attribution.name
    (voice,) = program.voices
    assert (voice.name, voice.description, voice.installed, voice.languages) == ("toy", "toy: a toy", True, ["mul"])


class Polyglots(ToyFrontend):
    """Voices of several languages, one of them of another's dialect."""

    voices = (
        VoiceInfo("vivian"),
        VoiceInfo("dylan", language="beijing_dialect", description="lively"),
        VoiceInfo("anna", language="german"),
    )
    languages = ("auto", "english", "chinese", "german", "beijing_dialect", "klingon")

    def resolve(self, request):
        self.requests.append(request)
        return request


def test_voices_have_the_languages_that_home_assistant_knows():
    with seeded(frontend=Polyglots()) as voice, wyoming_served(voice, voice_aliases={"house": "anna"}) as server:
        found = {v.name: v for v in info_from(server).tts[0].voices}
        assert {name: v.languages for name, v in found.items()} == {
            "vivian": ["en", "zh", "de", "klingon"],
            "dylan": ["zh", "en", "de", "klingon"],
            "anna": ["de", "en", "zh", "klingon"],
            "house": ["de", "en", "zh", "klingon"],
        }
        assert [v.description for v in found.values()] == ["vivian", "dylan: lively", "anna", "house (anna)"]


@pytest.mark.parametrize(
    ("asked", "voice", "language"),
    [
        (SynthesizeVoice(name="dylan"), "dylan", None),
        (SynthesizeVoice(name="ANNA", speaker="x"), "ANNA", None),
        (SynthesizeVoice(name="house"), "anna", None),
        (SynthesizeVoice(name="alloy"), "vivian", None),
        (SynthesizeVoice(language="de"), "anna", "german"),
        (SynthesizeVoice(language="zh_CN"), "dylan", "chinese"),
        (SynthesizeVoice(language="en-GB"), None, "english"),
        (SynthesizeVoice(language="Beijing_Dialect"), "dylan", "beijing_dialect"),
        (SynthesizeVoice(), None, None),
        (None, None, None),
    ],
)
def test_who_speaks(asked, voice, language):
    frontend = Polyglots()
    with seeded(frontend=frontend) as speaker, wyoming_served(speaker, voice_aliases={"house": "anna"}) as server:
        assert audio(server.ask(Synthesize("one", asked).event(), last="audio-stop"))
        assert (frontend.requests[-1].voice, frontend.requests[-1].language) == (voice, language)


def test_a_model_without_voices_offers_none():
    class Nobody(ToyFrontend):
        voices = ()

    with seeded(frontend=Nobody()) as voice, wyoming_served(voice) as server:
        (program,) = info_from(server).tts
        assert (program.installed, program.voices) == (False, [])


def test_ping(server):
    (event,) = server.ask(Ping("hé").event(), last="pong")
    assert Pong.from_event(event).text == "hé"
    (event,) = server.ask(Event("ping", {"text": 5}), last="pong")
    assert Pong.from_event(event).text is None


# ---- one text


def test_one_text_is_one_stream_of_audio(server):
    found = server.ask(one_shot("One two. Three four. Five."), last="audio-stop")
    assert shape(found) == ["audio-start", "audio-chunk", "audio-stop"]
    start = AudioStart.from_event(found[0])
    assert (start.rate, start.width, start.channels) == (24000, 2, 1)
    assert audio(found) == spoken(server, "One two. Three four. Five.")


def test_several_texts_on_one_connection_are_spoken_in_order(server):
    async def talk() -> list[Event]:
        async with server.client() as client:
            for text in ("one", "two", "three"):
                await client.write_event(one_shot(text))
            return [event for _ in range(3) for event in await until(client, "audio-stop")]

    found = asyncio.run(talk())
    assert shape(found) == ["audio-start", "audio-chunk", "audio-stop"] * 3
    assert audio(found) == spoken(server, "one", "two", "three")


UNSPEAKABLE = [
    (one_shot("one", voice="vivian"), r"^Unknown voice 'vivian'\. Valid choices: toy\.$"),
    (one_shot("one", voice=" "), r"^voice must not be empty"),
    (Synthesize("one", SynthesizeVoice(language="tlh")).event(), r"^Unknown language 'tlh'\. Valid choices: auto\.$"),
    (one_shot(""), r"empty"),
    (one_shot(" \n"), r"empty"),
    (one_shot("one", text_format="ssml"), r"^text_format 'ssml' is not read here"),
    (Event("synthesize"), r"^The event needs a text"),
    (Event("synthesize", {"text": ["x"]}), r"not list\.$"),
    (Event("synthesize", {"text": "one", "voice": "toy"}), r"^voice must be an object"),
    (Event("synthesize", {"text": "one", "voice": {"name": 5}}), r"name must be a string"),
    (Event("synthesize", {"text": "one", "voice": {"language": {}}}), r"language must be a string"),
    (one_shot("x" * 20_001), r"^More than 20,000 characters"),
]


@pytest.mark.parametrize(("event", "message"), UNSPEAKABLE, ids=range(len(UNSPEAKABLE)))
def test_a_text_that_cannot_be_spoken_is_an_error_and_the_end(server, event, message):
    """Home Assistant waits for an audio-stop, which would mean speech, or for the end of the connection."""
    (found,) = server.ask(event, last="")
    assert (found.type, found.data["code"]) == ("error", "BadRequestError")
    assert re.search(message, found.data["text"])


def test_speech_that_breaks_off_has_no_audio_stop():
    with seeded(ToyTalker(200), WideDecoder(poison_at=150)) as voice, wyoming_served(voice) as server:
        found = server.ask(one_shot(" ".join(["word"] * 20)), one_shot("two"), last="")
        assert shape(found) == ["audio-start", "audio-chunk", "error"]
        assert found[-1].data["code"] == "InternalServerError"


# ---- a stream of text


def test_home_assistant_streams(server):
    found = server.ask(*stream("Hello th", "ere. How are", " you? Fi", "ne"), last="synthesize-stopped")
    assert shape(found) == STREAMED
    assert audio(found) == spoken(server, "Hello there.", "How are you?", "Fine")


def test_a_sentence_is_spoken_before_the_next_has_come(server):
    async def talk() -> tuple[list[Event], list[Event]]:
        async with server.client() as client:
            await client.write_event(SynthesizeStart().event())
            await client.write_event(SynthesizeChunk("Hello there. How ").event())
            size = len(spoken(server, "Hello there."))
            first = await until(client, "audio-start")
            while len(audio(first)) < size:
                first.append(await client.read_event())
            await client.write_event(SynthesizeChunk("are you?").event())
            await client.write_event(SynthesizeStop().event())
            return first, await until(client, "synthesize-stopped")

    first, rest = asyncio.run(talk())
    assert audio(first) == spoken(server, "Hello there.")
    assert shape(rest) == STREAMED[1:]
    assert audio(rest) == spoken(server, "How are you?")


def test_a_new_start_ends_the_stream_before(server):
    start, chunk, _, stop = stream("One")
    found = server.ask(start, chunk, start, chunk, stop, last="synthesize-stopped")
    assert shape(found) == STREAMED
    found = server.ask(start, chunk, start, chunk, stop, one_shot("One"), Event("synthesize", {"text": ""}), last="")
    assert shape(found) == [*STREAMED, *STREAMED, "audio-start", "audio-chunk", "audio-stop", "error"]
    assert audio(found) == spoken(server, "One", "One", "One")


@pytest.mark.parametrize("pieces", [(), ("",), (" \n", "\t"), ("…", " — ")], ids=repr)
def test_a_stream_of_nothing_ends_as_any_other(server, pieces):
    (found,) = server.ask(*stream(*pieces), last="synthesize-stopped")
    assert found.type == "synthesize-stopped"


def test_a_stop_is_answered_even_without_a_start(server):
    found = server.ask(SynthesizeChunk("one").event(), SynthesizeStop().event(), last="synthesize-stopped")
    assert shape(found) == ["error", "synthesize-stopped"]


def test_a_stream_with_a_wrong_voice_is_one_error_and_the_connection_goes_on(server):
    found = server.ask(*stream("One. Two. ", "Three.", voice="vivian"), *stream("Four."), one_shot(""), last="")
    assert shape(found) == ["error", "synthesize-stopped", *STREAMED, "error"]
    assert errors(found)[0] == "Unknown voice 'vivian'. Valid choices: toy."
    assert audio(found) == spoken(server, "Four.")


def test_a_stream_goes_on_after_a_sentence_that_failed():
    broken = Failing(at=1)
    with seeded(ToyTalker(on_prefill=broken)) as voice, wyoming_served(voice) as server:
        found = server.ask(*stream("One. Two. Three."), last="synthesize-stopped")
        assert shape(found) == ["audio-start", "audio-chunk", "error", *STREAMED[1:]]
        assert audio(found) == spoken(server, "One.", "Three.")


def test_a_piece_that_is_no_text_is_an_error_and_the_stream_goes_on(server):
    start, chunk, _, stop = stream("One.")
    found = server.ask(start, Event("synthesize-chunk", {"text": 5}), chunk, stop, last="synthesize-stopped")
    assert shape(found) == ["error", *STREAMED]


def test_more_text_than_may_wait_is_dropped():
    barrier = Barrier(at=0)
    with seeded(ToyTalker(3, on_step=barrier)) as voice, wyoming_served(voice, max_input_chars=100) as server:

        async def talk() -> list[Event]:
            async with server.client() as client:
                for event in stream("One. ", "x" * 90 + ". ", "y" * 90 + ". "):
                    await client.write_event(event)
                await client.write_event(Ping().event())
                found = await until(client, "pong")  # all of it has been read
                barrier.go.set()
                return found + await until(client, "synthesize-stopped")

        found = asyncio.run(talk())
        assert [text for text in errors(found) if "More than 100 characters wait" in text]
        assert audio(found) == spoken(server, "One.", "x" * 90 + ".")


# ---- other events


def test_unknown_events_are_passed_over(server):
    strange = [
        Event("select-program", {"name": "piper"}),
        Event("audio-chunk", {"rate": 16000, "width": 2, "channels": 1}, bytes(300_000)),
        Event("not-invented-yet", {"text": "x" * 100_000}),
        Event("audio-stop"),
        Event(""),
    ]
    start, chunk, whole, stop = stream("One.")
    found = server.ask(*strange, start, *strange, chunk, whole, *strange, stop, last="synthesize-stopped")
    assert shape(found) == STREAMED


def test_data_may_be_in_the_line_itself(server):
    """As older clients, and people with a shell, write it."""

    async def talk() -> list[Event]:
        async with server.client() as client:
            client._writer.write(b'{"type": "synthesize", "data": {"text": "one", "voice": {"name": "toy"}}}\n')
            return await until(client, "audio-stop")

    assert audio(asyncio.run(talk())) == spoken(server, "one")


# ---- as Home Assistant reads it


async def home_assistant_reads(client: AsyncClient) -> bytes:
    """A WAV header from the first audio-start, then the audio of every chunk, until synthesize-stopped."""
    data = b""
    while (event := await client.read_event()) is not None and event.type != "synthesize-stopped":
        if event.type == "audio-start" and not data:
            start = AudioStart.from_event(event)
            with io.BytesIO() as file:
                with wave.open(file, "wb") as header:
                    header.setparams((start.channels, start.width, start.rate, 0, "NONE", ""))
                data = file.getvalue()
        elif event.type == "audio-chunk" and data:
            data += event.payload
    return data


def test_the_embedded_voice_speaks_to_home_assistant(embedded):
    with wyoming_served(embedded) as server:
        voices = info_from(server).tts[0].voices
        assert {v.name: v.languages for v in voices} == {"fern": ["en"], "moss": ["en"]}

        async def talk() -> bytes:
            async with server.client() as client:
                reading = asyncio.create_task(home_assistant_reads(client))
                for event in stream("The light is ", "on. It is **21** degrees.", voice="moss"):
                    await client.write_event(event)
                return await reading

        data = asyncio.run(talk())
        expected = [embedded.say(text, voice="moss").pcm16() for text in ("The light is on.", "It is **21** degrees.")]
        assert data[44:] == b"".join(expected)
        assert_spoken(
            np.frombuffer(data[44:], "<i2") / np.float32(32768),
            [f for t in ("The light is on.", "It is 21 degrees.") for f in planned(plan(embedded, t, voice="moss"))],
        )
