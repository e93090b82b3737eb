"""The player with real pipes: programs of our own stand in for the loudspeaker's."""

import sys
import threading

import numpy as np
import pytest

from ouzel.audio.gate import Outlook
from ouzel.audio.pcm import AudioChunk, to_pcm16
from ouzel.audio.player import Player
from ouzel.audio.sinks import PipeSink, open_sink, pipe_command
from ouzel.errors import MissingExtraError, SynthesisError, UsageError

RATE = 24000


def chunks(n: int, size: int = 1920):
    rng = np.random.default_rng(0)
    for i in range(n):
        yield AudioChunk(rng.uniform(-1, 1, size).astype(np.float32), RATE, i, i == n - 1, 1)


def program(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", code]


def into(command):
    return lambda ring, rate: PipeSink(ring, rate, command)


def copy_to(path) -> list[str]:
    return program(f"import sys, shutil; shutil.copyfileobj(sys.stdin.buffer, open({str(path)!r}, 'wb'))")


@pytest.mark.parametrize("gate", [False, True])
def test_what_is_played_is_what_was_streamed(tmp_path, gate):
    heard = tmp_path / "heard"
    with Player(open_sink=into(copy_to(heard)), gate=gate) as player:
        assert player.play(chunks(30))
    assert heard.read_bytes() == b"".join(to_pcm16(c.samples) for c in chunks(30))


def test_the_gate_holds_until_the_outlook_is_safe(tmp_path):
    """Slower than real time with an unknown length: nothing may be heard before the last chunk is there."""
    heard = tmp_path / "heard"
    states: list[int] = []

    def watched():
        for chunk in chunks(5):
            states.append(heard.stat().st_size if heard.exists() else 0)
            yield chunk

    player = Player(open_sink=into(copy_to(heard)), buffer_s=0.01)
    assert player.play(watched(), outlook=lambda: Outlook(rtf=2.0, next_chunk_s=0.08))
    assert states == [0, 0, 0, 0, 0]
    assert heard.stat().st_size == 5 * 1920 * 2


def test_stop_silences_and_lets_the_play_call_return():
    never_reads = program("import time; time.sleep(600)")
    player = Player(open_sink=into(never_reads), gate=False, buffer_s=0.1)
    seen = threading.Event()

    closed = threading.Event()

    def endless():
        try:
            for i, chunk in enumerate(chunks(10_000)):
                if i == 3:
                    seen.set()
                yield chunk
        finally:
            closed.set()

    results: list[bool] = []
    playing = threading.Thread(target=lambda: results.append(player.play(endless())))
    playing.start()
    assert seen.wait(30)
    player.stop()
    player.stop()
    playing.join(30)
    assert results == [False]
    assert closed.is_set()  # nobody goes on making what nobody hears
    assert "ouzel-player" not in [t.name for t in threading.enumerate()]


def test_stop_before_anything_and_play_again_after_it(tmp_path):
    heard = tmp_path / "heard"
    player = Player(open_sink=into(copy_to(heard)))
    player.stop()
    assert player.play(chunks(3))
    assert heard.stat().st_size == 3 * 1920 * 2
    assert player.play(iter(()))


def test_an_error_of_the_stream_passes_and_ends_playback():
    def breaks():
        yield from chunks(2)
        raise SynthesisError("cut")

    player = Player(open_sink=into(program("import sys; sys.stdin.buffer.read()")))
    with pytest.raises(SynthesisError, match="cut"):
        player.play(breaks())
    assert "ouzel-player" not in [t.name for t in threading.enumerate()]


def test_a_player_program_that_fails_is_an_error():
    player = Player(open_sink=into(program("import sys; sys.exit(3)")), gate=False)
    with pytest.raises(SynthesisError, match="ended with code 3"):
        player.play(chunks(2000))


def test_nothing_to_play_with_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ouzel\[play\]'"):
        open_sink(None, RATE, "auto", which=lambda name: None)
    with pytest.raises(MissingExtraError, match="no program 'aplay'"):
        open_sink(None, RATE, "aplay", which=lambda name: None)
    with pytest.raises(MissingExtraError, match="sounddevice cannot be used"):
        open_sink(None, RATE, "sounddevice", which=lambda name: None)
    with pytest.raises(UsageError, match="aplay"):
        open_sink(None, RATE, "aplya")


def test_programs_are_told_rate_and_format():
    assert pipe_command("aplay", "/bin/aplay", 24000)[:1] == ["/bin/aplay"]
    assert "24000" in pipe_command("aplay", "/bin/aplay", 24000)
    assert {"s16le", "24000"} <= set(pipe_command("ffplay", "/bin/ffplay", 24000))
