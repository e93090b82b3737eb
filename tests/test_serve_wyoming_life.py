"""Wyoming clients that leave, read slowly, stand still or come in crowds; the server's end. Afterwards nothing is left."""

from __future__ import annotations

import asyncio
import re
import socket
import statistics
import subprocess
import sys
import time

import pytest
from wyoming.client import AsyncClient
from wyoming.info import Describe
from wyoming.tts import SynthesizeChunk, SynthesizeStart

from cli_run import start
from ouzel.errors import ConfigError, OuzelError
from ouzel.serve.run import run
from ouzel.serve.settings import ServeSettings
from serve_case import toy_voice
from toys import Barrier, ToyTalker
from wyoming_case import ENDLESS, WyomingServed, audio, errors, one_shot, seeded, shape, stream, until, wyoming_served

ASK_ENDLESS = b'{"type": "synthesize", "data": {"text": "%s"}}\n' % ENDLESS.encode()

# ---- leaving


@pytest.mark.parametrize("how", ["one-shot", "stream"])
def test_a_client_that_leaves_ends_its_speech(how):
    talker = ToyTalker(3000)
    with toy_voice(talker) as voice, wyoming_served(voice) as server:
        times = []

        async def begin_and_leave() -> None:
            async with server.client() as client:
                for event in [one_shot(ENDLESS)] if how == "one-shot" else stream(ENDLESS, ". And more."):
                    await client.write_event(event)
                await until(client, "audio-chunk")

        for _ in range(10):
            asyncio.run(begin_and_leave())
            times.append(server.wait_idle())
        assert len(talker.states) == 0
        assert talker.steps < 10 * 3000
        assert server.desk.metrics.value("speech_stream_aborted_total", reason="cancelled") == 10
    print(f"{how}: from leaving to idle: median {statistics.median(times) * 1000:.1f} ms, max {max(times) * 1000:.1f} ms")


def test_leaving_before_the_first_frame():
    barrier = Barrier(at=0)
    talker = ToyTalker(3000, on_prefill=barrier)
    with toy_voice(talker) as voice, wyoming_served(voice) as server:

        async def begin_and_leave() -> None:
            async with server.client() as client:
                await client.write_event(one_shot(ENDLESS))
                assert await asyncio.to_thread(barrier.reached.wait, 30)

        asyncio.run(begin_and_leave())
        deadline = time.monotonic() + 30
        while server.desk._admitted and time.monotonic() < deadline:
            time.sleep(0.002)
        barrier.go.set()
        server.wait_idle()
        assert talker.steps == 0


def test_a_reset_connection_ends_its_speech():
    """As a machine that crashed sends it, without the goodbye."""
    talker = ToyTalker(3000)
    with toy_voice(talker) as voice, wyoming_served(voice) as server:
        with raw(server, ASK_ENDLESS) as client:
            assert client.recv(10)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        server.wait_idle()
        assert len(talker.states) == 0
        assert talker.steps < 3000


def raw(server, data: bytes) -> socket.socket:
    """A client that reads what and when the test wants."""
    client = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    client.sendall(data)
    return client


# ---- reading slowly


def test_a_slow_reader_holds_back_its_own_speech_only():
    talker = ToyTalker(3000)
    with toy_voice(talker) as voice, wyoming_served(voice) as server, raw(server, ASK_ENDLESS):
        steps = -1
        while steps != talker.steps:  # until the backpressure has reached the talker
            steps = talker.steps
            time.sleep(0.3)
        assert 0 < talker.steps < 2000
        other = server.ask(one_shot("another one"), last="audio-stop")
        assert shape(other) == ["audio-start", "audio-chunk", "audio-stop"]


def test_a_reader_that_stands_still_is_cut():
    talker = ToyTalker(3600)
    settings = {"write_stall_s": 0.3}
    with toy_voice(talker) as voice, wyoming_served(voice, **settings) as server, raw(server, ASK_ENDLESS) as client:
        assert client.recv(100)
        server.wait_idle()
        gone(server)
        assert talker.steps < 3600


def gone(server) -> None:
    """Wait until no client is left."""
    deadline = time.monotonic() + 30
    while server.server.sessions:
        assert time.monotonic() < deadline
        time.sleep(0.005)


# ---- waiting, and crowds


def test_a_silent_client_is_told_and_dropped_but_not_while_it_listens():
    with toy_voice() as voice, wyoming_served(voice, wyoming_idle_s=0.4) as server:
        (found,) = server.ask(last="")
        assert (found.type, found.data["code"]) == ("error", "RequestTimeoutError")
        with raw(server, b'{"type": "syn') as client:
            assert b"No event came for 0.4 s." in client.makefile("rb").read()
    barrier = Barrier(at=2)
    with toy_voice(ToyTalker(5, on_step=barrier)) as voice, wyoming_served(voice, wyoming_idle_s=0.4) as server:

        async def listen() -> list:
            async with server.client() as client:
                await client.write_event(one_shot("one"))
                await until(client, "audio-chunk")
                await asyncio.sleep(1)
                barrier.go.set()
                return await until(client, "audio-stop")

        assert audio(asyncio.run(listen()))


def test_one_client_too_many():
    with toy_voice() as voice, wyoming_served(voice, max_wyoming_clients=2) as server:

        async def crowd() -> list:
            async with server.client() as one, server.client() as two:
                for client in (one, two):
                    await client.write_event(Describe().event())
                    await until(client, "info")
                async with server.client() as three:
                    return await until(three, "")

        (found,) = asyncio.run(crowd())
        assert (found.type, found.data["code"]) == ("error", "RateLimitError")
        gone(server)
        assert server.ask(Describe().event(), last="info")


def test_a_busy_server_says_so():
    barrier = Barrier(at=0)
    settings = {"concurrency": 1, "queue": 0}
    with toy_voice(ToyTalker(5, on_step=barrier)) as voice, wyoming_served(voice, **settings) as server, raw(server, ASK_ENDLESS):
        assert barrier.reached.wait(30)
        (found,) = server.ask(one_shot("two"), last="")
        assert (found.type, found.data["code"]) == ("error", "RateLimitError")
        assert shape(server.ask(*stream("Two."), last="synthesize-stopped")) == ["error", "synthesize-stopped"]
        barrier.go.set()


def at_once(server: WyomingServed, texts: list[str]) -> list[bytes]:
    async def speak(i: int) -> bytes:
        """Half of them as one text, half as a stream of it."""
        async with server.client() as client:
            for event in stream(texts[i]) if i % 2 else [one_shot(texts[i])]:
                await client.write_event(event)
            return audio(await until(client, "synthesize-stopped" if i % 2 else "audio-stop"))

    async def all_of_them() -> list[bytes]:
        return await asyncio.gather(*map(speak, range(len(texts))))

    return asyncio.run(all_of_them())


def test_eight_at_once_sound_as_each_does_alone():
    texts = [f"Sentence {word} of them." for word in ("one", "two", "three", "four", "five", "six", "seven", "eight")]
    with seeded() as voice, wyoming_served(voice) as server:
        alone = [voice.say(text).pcm16() for text in texts]
        for _ in range(5):
            assert at_once(server, texts) == alone


def test_the_embedded_voice_speaks_to_several_at_once(embedded):
    texts = ["Yes.", "Good night.", "Not now."]
    with wyoming_served(embedded) as server:
        assert at_once(server, texts) == [embedded.say(text).pcm16() for text in texts]


# ---- the end


def test_draining_ends_what_is_spoken_and_takes_nothing_new():
    barrier = Barrier(at=3)
    with toy_voice(ToyTalker(20, on_step=barrier)) as voice, wyoming_served(voice) as server:

        async def listen() -> list:
            async with server.client() as client:
                await client.write_event(one_shot("one"))
                assert await asyncio.to_thread(barrier.reached.wait, 30)
                server.http.call(server.desk.drain)
                async with server.client() as late:
                    await late.write_event(one_shot("two"))
                    (refused,) = await until(late, "")
                assert refused.data["code"] == "ServiceUnavailableError"
                barrier.go.set()
                return await until(client, "audio-stop")

        found = asyncio.run(listen())
        assert len(audio(found)) == 2 * 1920 * 20


@pytest.mark.parametrize("streamed", [False, True])
def test_stopping_silences_what_is_spoken(streamed):
    barrier = Barrier(at=3)
    with toy_voice(ToyTalker(3000, on_step=barrier)) as voice, wyoming_served(voice) as server:

        async def listen() -> list:
            async with server.client() as client:
                for event in stream(ENDLESS) if streamed else [one_shot(ENDLESS)]:
                    await client.write_event(event)
                assert await asyncio.to_thread(barrier.reached.wait, 30)
                server.http.call(server.desk.stop)
                barrier.go.set()
                return await until(client, "synthesize-stopped" if streamed else "")

        found = asyncio.run(listen())
        assert errors(found)[0] == "The speech was stopped, since the server is stopping."
        assert "audio-chunk" not in shape(found)[shape(found).index("error") :]
        assert found[-1].type == ("synthesize-stopped" if streamed else "error")


@pytest.mark.parametrize("ended", [True, False])
def test_closing_lets_the_end_be_heard(ended):
    """`close` comes before the events that end a reply, or before the client has ended its stream."""
    with toy_voice(ToyTalker(5)) as voice, wyoming_served(voice) as server:

        async def listen() -> list:
            async with server.client() as client:
                for event in stream("One. Two.")[: None if ended else -1]:
                    await client.write_event(event)
                await until(client, "audio-start")
                closing = asyncio.create_task(asyncio.to_thread(server.close))
                found = await until(client, "")
                await closing
                return found

        assert shape(asyncio.run(listen()))[-2:] == ["audio-stop", "synthesize-stopped"]


# ---- the command


def test_the_command_speaks_http_and_wyoming_and_ends_cleanly(tmp_path):
    path = tmp_path / "wyoming.sock"
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))  # what a server leaves that could not clean up
    process = start(
        *("serve", "-m", "embedded", "--port", "0", "--threads", "1", "--schedule", "fixed:1/25"),
        *("--wyoming", "tcp://127.0.0.1:0", "--wyoming", f"unix://{path}"),
        home=tmp_path,
    )
    line = process.stderr.readline().decode()
    uris = re.fullmatch(r"ouzel: listening on http:\S+ and (tcp:\S+) and (unix:\S+)\n", line)
    # Not waiting for "ready": who comes early is answered when there is a voice.

    async def talk(uri: str) -> bytes:
        async with AsyncClient.from_uri(uri, read_timeout=120) as client:
            await client.write_event(one_shot("Secret."))
            return audio(await until(client, "audio-stop"))

    async def linger(uri: str) -> None:
        """A client in the middle of a stream does not hold up the end."""
        async with AsyncClient.from_uri(uri, read_timeout=120) as client:
            await client.write_event(SynthesizeStart().event())
            await client.write_event(SynthesizeChunk("Secret. And").event())
            await until(client, "audio-start")
            process.terminate()
            await until(client, "")

    try:
        first, second = (asyncio.run(talk(uri)) for uri in uris.groups())
        asyncio.run(linger(uris[1]))
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert first == second != b""
    log = err.decode()
    assert (process.returncode, out) == (0, b""), log
    assert "Traceback" not in log
    assert log.count("route=wyoming format=pcm delivery=audio chars=7 outcome=ok") == 3
    assert "ecret" not in log
    assert not path.exists()


def test_wyoming_bench_measures_both_ways():
    """Its own words at the end of each text are such as d32579dc."""
    bench = [sys.executable, "-c", "import sys; from wyoming_bench.cli import main; sys.exit(main())"]
    with seeded() as voice, wyoming_served(voice) as server:
        options = ["--texts", "The light is on.", "It rains. Take a coat.", "--rounds", "1", "--warmup", "0", "--verbose"]
        done = subprocess.run(
            [*bench, "tts", f"127.0.0.1:{server.port}", *options], capture_output=True, text=True, timeout=120, check=False
        )
        print(done.stdout)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("ok=2 fail=0") == 2


# ---- where it listens

NO_ADDRESSES = """
    10200 127.0.0.1:10200 tcp://127.0.0.1 tcp://:10200 tcp://::1:10200 tcp://x:99999 tcp://x:-1 unix:// stdio://
    http://127.0.0.1:10200 tcp://user@x:1 tcp://127.0.0.1:10200/path
""".split()


@pytest.mark.parametrize("uri", ["tcp://127.0.0.1:10200", "tcp://[::1]:10200", "tcp://localhost:0", "unix:///run/ouzel.sock"])
def test_addresses_of_this_machine_are_open(uri):
    assert ServeSettings(wyoming=(uri,)).wyoming == (uri,)


@pytest.mark.parametrize("uri", ["tcp://0.0.0.0:10200", "tcp://[::]:10200", "tcp://192.168.1.5:1", "tcp://homeassistant:10200"])
def test_others_must_be_allowed(uri):
    with pytest.raises(ConfigError, match=r"Wyoming has no keys.*--allow-unauthenticated"):
        ServeSettings(wyoming=(uri,), api_keys=("key",))
    assert ServeSettings(wyoming=(uri,), allow_unauthenticated=True)


@pytest.mark.parametrize("uri", NO_ADDRESSES)
def test_what_is_no_address_is_named_with_the_forms(uri):
    with pytest.raises(ConfigError, match="tcp://HOST:PORT or unix:///PATH"):
        ServeSettings(wyoming=(uri,))


def test_a_taken_address_is_one_sentence(tmp_path):
    def refused(uri: str) -> str:
        with pytest.raises(OuzelError, match=r"^Cannot listen on .* choose another --wyoming\.$") as caught:
            run(ServeSettings(port=0, wyoming=(uri,)), lambda: pytest.fail("nothing is loaded"))
        return str(caught.value)

    file = tmp_path / "file"
    file.write_text("mine")
    refused(f"unix://{file}")
    assert file.read_text() == "mine"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"127.0.0.1:{port}" in refused(f"tcp://127.0.0.1:{port}")
    with socket.socket(socket.AF_UNIX) as taken:
        taken.bind(str(tmp_path / "s"))
        taken.listen()
        refused(f"unix://{tmp_path / 's'}")
        assert (tmp_path / "s").exists()
    refused(f"unix://{tmp_path / 'no' / 's'}")
    refused(f"unix://{tmp_path / ('s' * 200)}")


@pytest.mark.parametrize("settings", [{"host": "x" * 70}, {"wyoming": (f"tcp://{'x' * 70}:1",)}], ids=["http", "wyoming"])
def test_a_name_that_cannot_be_one_is_one_sentence(settings):
    with pytest.raises(OuzelError, match=r"^The address 'x+' is not known here: .+\.$"):
        run(ServeSettings(**{"port": 0, "allow_unauthenticated": True} | settings), lambda: pytest.fail("nothing is loaded"))
