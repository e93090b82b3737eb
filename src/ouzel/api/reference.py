"""A voice out of a recording: checked, resampled, through the bundle's encoders, and remembered."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ouzel.adapters import CodecEncoderAdapter, SpeakerAdapter
from ouzel.audio.recording import check_recording
from ouzel.audio.resample import resample
from ouzel.bundle import Artifact, Bundle
from ouzel.errors import BundleError, UsageError
from ouzel.request import Reference
from ouzel.runtimes.base import EncoderRuntime, StageOptions
from ouzel.runtimes.registry import active_runtime

TASK = "Base"  # contract 4.5
_NAMES = {"speaker_encoder": "speaker encoder", "codec_encoder": "codec encoder"}

Samples = NDArray[np.float32]


class References:
    """The encoders of one bundle, loaded when a recording first needs them, and what they made of the latest recordings.

    Safe to use from several threads; recordings are encoded one at a time.
    """

    def __init__(self, bundle: Bundle, *, threads: int = 0, entries: int = 1024) -> None:
        """threads: 0 lets the runtime choose. entries: arrays kept at most, the oldest unused goes first; 0 keeps none."""
        self._bundle, self._threads, self._entries = bundle, threads, entries
        self._lock = threading.Lock()
        self._loaded: dict[str, Any] = {}
        # A vector and codes of the same recording have entries of their own (#5049 of vLLM-Omni: they must not share one).
        self._made: OrderedDict[tuple[str, bytes], NDArray[Any]] = OrderedDict()

    def check(self, text: str | None) -> None:
        """What can be said before a recording is there. Raises UsageError, BundleError."""
        task = self._bundle.manifest.task
        if task != TASK:
            raise UsageError(f"Only {TASK} models take a recording for a voice; this is a {task} model.", param="ref_audio")
        if text is not None and not isinstance(text, str):
            raise UsageError(f"ref_text must be a text, not {text!r}.", param="ref_text")
        if text is not None and not text.strip():
            raise UsageError("ref_text is empty: give what is said in the recording, or leave it out.", param="ref_text")
        for stage in _stages(text):
            self._artifact(stage)

    def read(self, samples: Samples, text: str | None, sample_rate: int) -> Reference:
        """See `Voice.reference`."""
        self.check(text)
        heard = check_recording(samples, sample_rate)
        key = hashlib.sha256(f"{sample_rate} {len(heard)} ".encode() + heard.tobytes()).digest()
        with self._lock:
            vector = self._make("speaker_encoder", key, heard, sample_rate)
            codes = self._make("codec_encoder", key, heard, sample_rate) if text is not None else None
        return Reference(vector, codes, text)

    def _make(self, stage: str, key: bytes, heard: Samples, sample_rate: int) -> NDArray[Any]:
        slot = (stage, key)
        found = self._made.get(slot)
        if found is None:
            encoder = self._encoder(stage)
            ready = resample(heard, sample_rate, encoder.sample_rate)
            found = encoder.embed(ready) if isinstance(encoder, SpeakerAdapter) else encoder.encode(ready)
            found.flags.writeable = False  # others get the same array
            self._made[slot] = found
        self._made.move_to_end(slot)
        while len(self._made) > self._entries:
            self._made.popitem(last=False)
        return found

    def _encoder(self, stage: str) -> SpeakerAdapter | CodecEncoderAdapter:
        if stage not in self._loaded:
            artifact = self._artifact(stage)
            runtime = active_runtime(artifact.runtime)
            if not isinstance(runtime, EncoderRuntime) or stage not in runtime.encoders:
                raise BundleError(
                    f"The {_NAMES[stage]} is for runtime {artifact.runtime}, which cannot carry it out.", param="ref_audio"
                )
            self._loaded[stage] = runtime.load_encoder(self._bundle, artifact, StageOptions(self._threads))
        encoder: SpeakerAdapter | CodecEncoderAdapter = self._loaded[stage]
        return encoder

    def _artifact(self, stage: str) -> Artifact:
        for artifact in self._bundle.manifest.artifacts:
            if artifact.stage == stage:
                return artifact
        raise BundleError(
            f"Bundle {self._bundle.manifest.name!r} cannot make a voice of a recording: it has no {_NAMES[stage]}. Convert its "
            "checkpoint again (`ouzel convert CHECKPOINT FOLDER --force`), if that has one.",
            param="ref_audio",
        )


def _stages(text: str | None) -> tuple[str, ...]:
    return ("speaker_encoder",) if text is None else ("speaker_encoder", "codec_encoder")
