"""Who speaks the held-out sentences (the teacher, a bundle), what the judges make of it, and the book that remembers it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ouzel.adapters import TalkerSampling
from ouzel.api import Voice, load
from ouzel.api.plan import TextOptions, make_plan, make_request
from ouzel.bundle import Bundle, open_bundle
from ouzel.errors import OuzelError
from ouzel.models.qwen3_tts.reading import read_english
from ouzel.models.registry import get_family

from .judge import Listener, embedding, mos, pitch
from .reference import Reference
from .sentences import SETS, SHORT, read
from .teacher import SAMPLE_RATE, SPEAKERS
from .wording import Score, wer

SEED = 7


@dataclass(frozen=True)
class Item:
    """A sentence of a set: text to speak, said: what a listener writes down."""

    set: str
    text: str
    said: str


def items(sets: Sequence[str] = (*SETS, SHORT)) -> list[Item]:
    return [Item(name, text, said) for name in sets for text, said in read(name)]


@dataclass(frozen=True)
class Spoken:
    """audio: float32 at 24 kHz. frames: made; expected: by the text side (0: unknown); cpu: seconds of the process."""

    audio: np.ndarray
    finish: str = "stop"
    frames: int = 0
    expected: int = 0
    cpu: float = 0.0


@dataclass(frozen=True)
class Heard:
    """One sentence of one speaker, judged. mos: signal, background, overall; pitch: mean Hz, deviation and range in semitones."""

    set: str
    text: str
    said: str
    speaker: str
    heard: str
    seconds: float
    finish: str
    frames: int
    expected: int
    cpu: float
    mos: tuple[float, float, float]
    pitch: tuple[float, float, float]
    embedding: list[float] = field(repr=False)
    version: str = ""

    @cached_property
    def score(self) -> Score:
        return wer(self.said, self.heard)


class Source(Protocol):
    """Somebody who speaks. key: of the book. version: of one sentence; where it changes, the book's entry is out of date."""

    @property
    def key(self) -> str: ...
    def version(self, item: Item, speaker: str) -> str: ...
    def speak(self, item: Item, speaker: str) -> Spoken: ...


class TeacherSource:
    """The teacher, given the phones that the voice itself reads, so that both are to say the same."""

    def __init__(self, work: Path) -> None:
        self.key = "teacher"
        self._reference = Reference(work)

    def version(self, item: Item, speaker: str) -> str:
        return self._reference.path(read_english(item.text).form, speaker).stem

    def speak(self, item: Item, speaker: str) -> Spoken:
        return Spoken(self._reference.audio(read_english(item.text).form, speaker))


class VoiceSource:
    """A bundle through the product's own interface, on one thread. placed: runtimes of stages where `load` shall not choose,
    such as talker="llama_cpp". options: of every request."""

    def __init__(self, model: str | Path | None, placed: Mapping[str, str] | None = None, **options: Any) -> None:
        self.voice: Voice = load(model, threads=1, **(placed or {}))
        if self.voice.path is None:
            raise OuzelError("The report needs a voice that was loaded from a bundle's folder.")
        self.bundle: Bundle = open_bundle(self.voice.path)
        self.options = {"seed": SEED, **options}
        self._frontend = get_family(self.bundle.manifest.family).frontend(self.bundle)
        told = json.dumps(self.options | dict(placed or {}), sort_keys=True)
        self.key = checksum(self.bundle) + "-" + hashlib.sha256(told.encode()).hexdigest()[:6]

    def version(self, item: Item, speaker: str) -> str:
        return ""  # the key says it all

    def speak(self, item: Item, speaker: str) -> Spoken:
        """An utterance that fails is silence whose finish says why: it counts as words lost."""
        options = {"voice": speaker, **self.options}
        try:
            plan = make_plan(make_request(item.text, options), self._frontend, TalkerSampling(), SEED, TextOptions())
            expected = sum(segment.rows().frames or 0 for segment in plan.segments)
            began = time.process_time()
            speech = self.voice.say(item.text, **options)
            cpu = time.process_time() - began
        except OuzelError as error:
            return Spoken(np.zeros(0, np.float32), finish=f"error: {error}")
        return Spoken(np.asarray(speech.samples), speech.finish_reason, speech.metrics.frames, expected, cpu)

    def close(self) -> None:
        self.voice.close()


def checksum(bundle: Bundle) -> str:
    """Of the manifest, which holds those of all files."""
    return hashlib.sha256(bundle.manifest.dump().encode()).hexdigest()[:16]


class Book:
    """Judged sentences in a file, one JSON line each, so that a report that was stopped goes on where it was."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: dict[tuple[str, str], Heard] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    value = json.loads(line)
                except ValueError:  # the line that was being written when the report was stopped
                    continue
                heard = Heard(**{**value, "mos": tuple(value["mos"]), "pitch": tuple(value["pitch"])})
                self._found[heard.text, heard.speaker] = heard

    def get(self, item: Item, speaker: str, version: str = "") -> Heard | None:
        """What was heard of this sentence in this version; how it is to be written down may have changed."""
        found = self._found.get((item.text, speaker))
        return replace(found, set=item.set, said=item.said) if found and found.version == version else None

    def add(self, heard: Heard) -> None:
        self._found[heard.text, heard.speaker] = heard
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(heard), ensure_ascii=False) + "\n")


def judge(item: Item, speaker: str, spoken: Spoken, listener: Listener) -> Heard:
    audio = spoken.audio
    silent = not len(audio)
    return Heard(
        item.set,
        item.text,
        item.said,
        speaker,
        "" if silent else listener.transcribe(audio),
        len(audio) / SAMPLE_RATE,
        spoken.finish,
        spoken.frames,
        spoken.expected,
        spoken.cpu,
        mos(audio),
        pitch(audio),
        [] if silent else [round(float(x), 4) for x in embedding(audio)],
    )


def listen(
    source: Source,
    work: Path,
    wanted: Sequence[Item],
    listener: Callable[[], Listener],
    note: Callable[[str], None],
    speakers: Sequence[str] = tuple(SPEAKERS),
) -> list[Heard]:
    """All wanted sentences of all speakers, judged; what the book of this source has is not made again."""
    book = Book(work / "report" / f"{source.key}.jsonl")
    found: list[Heard] = []
    todo = [(item, speaker) for item in wanted for speaker in speakers]
    missing = sum(book.get(*pair, source.version(*pair)) is None for pair in todo)
    began, made = time.monotonic(), 0
    for item, speaker in todo:
        version = source.version(item, speaker)
        heard = book.get(item, speaker, version)
        if heard is None:
            heard = replace(judge(item, speaker, source.speak(item, speaker), listener()), version=version)
            book.add(heard)
            made += 1
            if made % 10 == 0 or made == missing:
                left = (missing - made) * (time.monotonic() - began) / made
                note(f"{source.key}: {made} of {missing} sentences, {left / 60:.1f} min left")
        found.append(heard)
    return found
