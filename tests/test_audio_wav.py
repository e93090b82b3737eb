"""WAV files: true sizes where the stream can go back, 0xFFFFFFFF where not, nothing left after an error."""

import io
import os
import struct
import wave

import numpy as np
import pytest

from ouzel.audio.pcm import fade_in, to_pcm16
from ouzel.audio.wav import UNKNOWN, WavFile, WavStream, wav_bytes, wav_header, write_wav
from ouzel.errors import UsageError

RAMP = np.linspace(-1, 1, 480, dtype=np.float32)


def test_a_file_has_true_sizes_and_the_samples(tmp_path):
    path = write_wav(tmp_path / "speech.wav", [RAMP[:100], RAMP[100:]], 24000)
    with wave.open(str(path)) as found:
        assert found.getparams()[:4] == (1, 2, 24000, 480)
        assert found.readframes(480) == to_pcm16(RAMP)
    assert path.read_bytes() == wav_bytes(RAMP, 24000)
    assert os.listdir(tmp_path) == ["speech.wav"]


def test_a_pipe_gets_unknown_sizes_and_the_header_comes_with_the_first_samples():
    read, write = os.pipe()
    with os.fdopen(write, "wb", buffering=0) as pipe:
        stream = WavStream(pipe, 24000)
        os.set_blocking(read, False)
        with pytest.raises(BlockingIOError):
            os.read(read, 1)
        stream.write(RAMP)
        stream.finish()
    with os.fdopen(read, "rb") as end:
        data = end.read()
    assert struct.unpack_from("<I", data, 4)[0] == UNKNOWN
    assert struct.unpack_from("<I", data, 40)[0] == UNKNOWN
    assert data[44:] == to_pcm16(RAMP)


def test_a_seekable_stream_is_rewritten_where_it_began():
    out = io.BytesIO(b"before")
    out.seek(6)
    stream = WavStream(out, 16000)
    stream.write(RAMP)
    stream.finish()
    assert out.getvalue() == b"before" + wav_bytes(RAMP, 16000)
    assert out.tell() == len(out.getvalue())


def test_an_appended_file_is_not_seekable_whatever_it_says(tmp_path):
    path = tmp_path / "joined"
    path.write_bytes(b"12")
    with path.open("ab") as out:
        stream = WavStream(out, 16000)
        stream.write(RAMP)
        stream.finish()
    data = path.read_bytes()
    assert len(data) == 2 + 44 + 960
    assert struct.unpack_from("<I", data, 2 + 40)[0] == UNKNOWN


def test_no_samples_still_make_a_valid_file(tmp_path):
    with wave.open(str(write_wav(tmp_path / "empty.wav", [], 24000))) as found:
        assert found.getnframes() == 0


def test_an_error_leaves_no_file_and_an_older_one_as_it_was(tmp_path):
    def breaks():
        yield RAMP
        raise RuntimeError("cut")

    with pytest.raises(RuntimeError):
        write_wav(tmp_path / "new.wav", breaks(), 24000)
    assert os.listdir(tmp_path) == []
    old = tmp_path / "old.wav"
    old.write_bytes(b"old")
    with pytest.raises(RuntimeError):
        write_wav(old, breaks(), 24000)
    assert old.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["old.wav"]


def test_discard_is_idempotent_and_commit_after_it_makes_nothing(tmp_path):
    out = WavFile(tmp_path / "a.wav", 24000)
    out.write(RAMP)
    out.discard()
    out.discard()
    out.commit()
    assert os.listdir(tmp_path) == []


def test_an_impossible_path_is_the_users_mistake(tmp_path):
    with pytest.raises(UsageError, match="Cannot write"):
        write_wav(tmp_path / "missing" / "a.wav", [RAMP], 24000)


def test_more_than_a_wav_can_hold_is_refused():
    stream = WavStream(io.BytesIO(), 24000)
    stream._data = UNKNOWN - 100
    with pytest.raises(UsageError, match="4 GiB"):
        stream.write(RAMP)


def test_header_fields():
    header = wav_header(24000, 1000)
    assert struct.unpack("<4sI4s4sIHHIIHH4sI", header) == (
        *(b"RIFF", 1036, b"WAVE", b"fmt ", 16, 1, 1, 24000, 48000, 2, 16),
        *(b"data", 1000),
    )


@pytest.mark.parametrize("cut", [1, 7, 100, 480])
def test_fade_is_the_same_however_it_is_cut(cut):
    whole = fade_in(RAMP, 0, 120)
    parts = [fade_in(RAMP[i : i + cut], i, 120) for i in range(0, 480, cut)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
    np.testing.assert_array_equal(whole[120:], RAMP[120:])
    assert whole[0] == 0
    assert fade_in(RAMP, 0, 0) is RAMP
