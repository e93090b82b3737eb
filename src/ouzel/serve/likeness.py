"""Whom a request wants to hear: the recording that it names, and how much of it to take over (contract 8.2)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ouzel.api import Voice
from ouzel.errors import UsageError, choose
from ouzel.request import Reference, SpeechRequest
from ouzel.serve.recording import Recordings
from ouzel.serve.schema import SpeechOptions
from ouzel.serve.workers import Workers

BASE = "Base"
_KEYS = ("audio_path", "text")


@dataclass(slots=True)
class Likeness:
    """source: where the recording is; path: which may be the bare path of a file. text: what is said in it.

    x_vector_only: take over the sound of the voice alone. made: from the recording, once it has been read; not compared.
    """

    source: str | None
    path: bool
    text: str | None
    x_vector_only: bool | None
    made: Reference | None = field(default=None, compare=False, repr=False)

    def remembered(self, last: Likeness | None) -> Likeness:
        """The last one in place of an equal one, so that a recording is read once for all sentences of a text."""
        return last if last is not None and last == self else self

    async def give(self, request: SpeechRequest, voice: Voice, recordings: Recordings, workers: Workers) -> SpeechRequest:
        """The request with the reference in it. Raises UsageError; nothing is fetched for a request that could not use it."""
        text = self._checked(request, voice)
        if self.source is None:
            return request
        voice.check_reference(text)
        made = self.made
        if made is None:
            found = await recordings.read(self.source, path=self.path)
            made = await workers.run(lambda _: voice.reference(found.samples, text, sample_rate=found.sample_rate))
            self.made = made
        # Whatever name there is in `voice`: it is a label, the recording is what is to be heard.
        return replace(request, **({"voice": None, "ref_text": None} | made.options()))

    def _checked(self, request: SpeechRequest, voice: Voice) -> str | None:
        """What is said in the recording, None if that does not matter."""
        field_name = "x_vector_only_mode" if self.source is None else "ref_audio"
        wanted = request.task_type
        if wanted is not None and wanted.lower() != BASE.lower():
            raise UsageError(f"{field_name} is for task_type {BASE}, not {wanted}.", param=field_name)
        if voice.task != BASE:
            raise UsageError(f"{field_name}: only Base models take a reference; this is a {voice.task} model.", param=field_name)
        if self.source is None or self.x_vector_only:
            return None
        if self.text is None or not self.text.strip():
            raise UsageError(
                "ref_text: give what is said in ref_audio, or x_vector_only_mode: true to take over only how the voice sounds.",
                param="ref_text",
            )
        return self.text


def likeness_of(options: SpeechOptions) -> Likeness | None:
    """None where a request says nothing of the kind. Raises UsageError."""
    source, path, text = options.ref_audio, False, options.ref_text
    if isinstance(source, list):
        if len(source) > 1:
            raise UsageError(f"ref_audio: one recording is taken, not {len(source)}.", param="ref_audio")
        source = source[0] if source else None
    if options.references:
        path = True
        listed, said = _listed(options.references)
        if source and source != listed:
            raise UsageError("Give either references or ref_audio, not both.", param="references")
        if said and text and said != text:
            raise UsageError("references and ref_text say different things of the recording; give one text.", param="ref_text")
        source, text = listed, said or text
    if not source:
        if options.x_vector_only_mode is None or options.speaker_embedding is not None:
            return None
        return Likeness(None, False, text, options.x_vector_only_mode)
    if options.speaker_embedding is not None:
        raise UsageError("Give either ref_audio or speaker_embedding, not both.", param="speaker_embedding")
    return Likeness(source, path, text, options.x_vector_only_mode)


def _listed(references: list[dict[str, Any]]) -> tuple[str, str | None]:
    if len(references) != 1:
        raise UsageError(f"references: one recording is taken, not {len(references)}.", param="references")
    for name in references[0]:
        if name not in _KEYS:
            raise choose("references", name, _KEYS)
    place, text = references[0].get("audio_path"), references[0].get("text")
    if not isinstance(place, str) or not place:
        raise UsageError("references[0].audio_path must be a text: an address, a data: URI or a path.", param="references")
    if text is not None and not isinstance(text, str):
        raise UsageError("references[0].text must be a text.", param="references")
    return place, text or None
