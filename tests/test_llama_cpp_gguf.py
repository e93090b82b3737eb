"""GGUF files: what is written is read again, and what is damaged is one sentence, before anything native sees it."""

from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ouzel.errors import BundleError, MissingExtraError
from ouzel.runtimes.llama_cpp import gguf_write
from ouzel.runtimes.llama_cpp.gguf_file import GgufFile
from ouzel.runtimes.llama_cpp.gguf_write import Weight, fitting, write

VALUES = {"a.flag": True, "a.count": 7, "a.ratio": 0.5, "a.name": "täg", "a.list": [1, -2, 3]}


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "made.gguf"
    kinds = {"one": ("fp32", (5,)), "two": ("f16", (3, 4)), "three": ("q8_0", (2, 3, 64)), "four": ("q4_0", (7, 32))}
    done: list[float] = []
    write(made, "test", VALUES, [Weight(n, s, k, lambda s=s: array(*s)) for n, (k, s) in kinds.items()], done.append)
    assert done == [0.25, 0.5, 0.75, 1.0]
    return made


def test_values_and_tensors_come_back(path: Path) -> None:
    file = GgufFile(path)
    assert file.values == {"general.architecture": "test", **VALUES, "a.list": (1, -2, 3)}
    assert {name: (t.shape, t.kind) for name, t in file.tensors.items()} == {
        "one": ((5,), 0),
        "two": ((3, 4), 1),
        "three": ((2, 3, 64), 8),
        "four": ((7, 32), 2),
    }
    np.testing.assert_array_equal(file.floats("one"), array(5))
    np.testing.assert_array_equal(file.floats("two"), array(3, 4).astype(np.float16))
    rounded = gguf.quants.dequantize(
        gguf.quants.quantize(array(2, 3, 64), gguf.GGMLQuantizationType.Q8_0), gguf.GGMLQuantizationType.Q8_0
    )
    np.testing.assert_array_equal(file.floats("three"), rounded)
    with pytest.raises(BundleError, match="four is stored as q4_0, where f32, f16 or q8_0 is needed"):
        file.floats("four")
    with pytest.raises(BundleError, match="lacks the tensor five"):
        file.require("five")


def test_llama_cpps_own_reader_agrees(path: Path) -> None:
    """gguf-py places every tensor at the same byte and finds the same values in it."""
    ours = GgufFile(path)
    for theirs in gguf.GGUFReader(path).tensors:
        mine = ours.tensors[theirs.name]
        assert (mine.start, mine.size, mine.kind) == (theirs.data_offset, theirs.n_bytes, theirs.tensor_type)
        assert mine.shape == tuple(int(n) for n in reversed(theirs.shape))
        assert bytes(ours.array(mine)) == theirs.data.tobytes()


def test_rows_that_are_no_blocks_keep_16_bits() -> None:
    assert [fitting(kind, (4, 48)) for kind in ("q4_0", "q8_0", "f16", "fp32")] == ["f16", "f16", "f16", "fp32"]
    assert fitting("q4_0", (4, 64)) == "q4_0"


def test_missing_and_misshapen_tensors_are_named(path: Path) -> None:
    file = GgufFile(path)
    file.check({"one": (5,), "two": (1, 3, 4)})
    with pytest.raises(BundleError, match=r"lacks the tensors five, six, seven, eight and 1 more; it is of another model"):
        file.check({name: (1,) for name in ("five", "six", "seven", "eight", "nine")})
    with pytest.raises(BundleError, match=r"another model: two is \(3, 4\), not \(4, 3\)"):
        file.check({"two": (4, 3)})


def test_vocabularies_are_passed_over(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "v.gguf", "test")
    writer.add_array("words", ["a", "bc", ""] * 50)
    writer.add_array("scores", [1.0] * 50)
    writer.add_uint32("after", 3)
    writer.add_tensor("t", np.ones(3, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = GgufFile(tmp_path / "v.gguf")
    assert (file.values["words"], file.values["scores"], file.values["after"]) == (None, None, 3)
    np.testing.assert_array_equal(file.floats("t"), np.ones(3))


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "cannot be read"),
        (b"PK\x03\x04rest", "is not a GGUF file"),
        (b"GGUF" + struct.pack("<IQQ", 9, 0, 0), "is GGUF version 9"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1 << 40, 0), "is a damaged GGUF file"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 60), "is a damaged GGUF file"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, content: bytes, match: str) -> None:
    (tmp_path / "bad.gguf").write_bytes(content)
    with pytest.raises(BundleError, match=match):
        GgufFile(tmp_path / "bad.gguf")


def test_a_cut_file_is_refused_at_every_length(path: Path, tmp_path: Path) -> None:
    whole = path.read_bytes()
    for length in range(0, len(whole) - 32, 37):  # the last tensor's padding may be missing
        (tmp_path / "cut.gguf").write_bytes(whole[:length])
        with pytest.raises(BundleError):
            GgufFile(tmp_path / "cut.gguf")


@settings(max_examples=200)
@given(at=st.integers(0, 500), byte=st.integers(0, 255))
def test_changed_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, at: int, byte: int) -> None:
    folder = tmp_path_factory.getbasetemp() / "changed"
    made = folder / "made.gguf"
    if not folder.exists():
        folder.mkdir()
        write(made, "test", VALUES, [Weight("one", (2, 32), "q8_0", lambda: array(2, 32))])
    content = bytearray(made.read_bytes())
    content[at % len(content)] = byte
    (folder / "now.gguf").write_bytes(content)
    try:
        file = GgufFile(folder / "now.gguf")
    except BundleError:
        return
    assert all(t.start + t.size <= len(content) for t in file.tensors.values())


def test_writing_without_gguf_names_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gguf", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ouzel\[llama-cpp\]'"):
        gguf_write.write(tmp_path / "none.gguf", "test", {}, [])
