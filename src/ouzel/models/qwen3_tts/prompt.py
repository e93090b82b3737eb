"""Prompt rows of one utterance: instruction, role, language, voice, text and reference (contract 4.2 to 4.6).

Notation of the contract: P = text rows, E0 = codec rows, A and R = filled-in templates, L = rows of the codec prefix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...adapters import PromptRows
from ...errors import UsageError, choose
from .config import ModelConfig
from .tables import Rows, Tables
from .text_side import Tokenizer

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Reference:
    """Audio to imitate in context: codes int64 (R, groups) and what is said in it."""

    codes: NDArray[np.int64]
    text: str


@dataclass(frozen=True, slots=True)
class Speech:
    """What to say and how. At most one of voice (a name in spk_id) and speaker (float32 (H,)) is set.

    language: "auto" or a key of codec_language_id. non_streaming: the whole text in the prefill, not one id a frame.
    speed: 2 is twice as fast; only an aligned text side can tell it.
    """

    text: str
    language: str = AUTO
    voice: str | None = None
    speaker: Rows | None = None
    reference: Reference | None = None
    instructions: str | None = None
    non_streaming: bool = True
    speed: float = 1.0


class PromptBuilder:
    """Makes PromptRows of Speech values; numpy only, no state.

    official_dialects: a dialect voice speaks its dialect for an explicit "chinese" too, as the official package has it;
    the server, and so the default, lets an explicit language win (contract 4.3).
    """

    def __init__(self, config: ModelConfig, tables: Tables, tokenizer: Tokenizer, *, official_dialects: bool = False) -> None:
        self._config = config
        self._talker = config.talker
        self._tables = tables
        self._tokenizer = tokenizer
        self._official_dialects = official_dialects
        start, end = config.im_start_token_id, config.im_end_token_id
        self._close = [end, *tokenizer.newline, start, *tokenizer.turn("assistant", "")]

    def build(self, speech: Speech) -> PromptRows:
        """The rows of contract 4.4. UsageError for an unknown voice or language, a wrong vector or wrong codes."""
        filled = self._assistant(speech)
        text = filled[3:-5]
        if not text:
            raise UsageError("The text has nothing to speak in it; give at least one character.")
        prefix = self._codec_prefix(speech)
        pad, begin = self._text([self._config.tts_pad_token_id])[0], self._text([self._config.tts_bos_token_id])[0]
        beside = np.repeat(pad[None], len(prefix) - 1, axis=0)
        beside[-1] = begin
        head = [self._instruction(speech.instructions), self._text(filled[:3]), beside + prefix[:-1]]
        if speech.reference is not None:
            body, trailing = self._in_context(speech, text, pad)
        else:
            body, trailing = self._plain(speech, text, pad)
        return PromptRows(np.concatenate([*head, body]), trailing, pad, len(text))

    def language_id(self, language: str, voice: str | None) -> int | None:
        """The codec id of a language, or of the voice's dialect where that applies; None = the model decides."""
        if language != AUTO and language not in self._talker.codec_language_id:
            raise choose("language", language, [AUTO, *self._talker.codec_language_id])
        dialect = self._talker.spk_is_dialect.get(voice or "", False)
        if dialect and (language == AUTO or (self._official_dialects and language == "chinese")):
            return self._talker.codec_language_id[str(dialect)]
        return None if language == AUTO else self._talker.codec_language_id[language]

    # ---- contract 4.2

    def _assistant(self, speech: Speech) -> list[int]:
        spoken = self._tokenizer.speaking(speech.voice, speech.speed)
        return [self._config.im_start_token_id, *spoken.turn("assistant", speech.text), *self._close]

    def _reference(self, text: str) -> list[int]:
        start, end = self._config.im_start_token_id, self._config.im_end_token_id
        filled = [start, *self._tokenizer.turn("assistant", text), end, *self._tokenizer.newline]
        return filled[3:-2]

    def _instruction(self, instructions: str | None) -> Rows:
        if not instructions:
            return self._text([])
        start, end = self._config.im_start_token_id, self._config.im_end_token_id
        return self._text([start, *self._tokenizer.turn("user", instructions), end, *self._tokenizer.newline])

    def _text(self, ids: list[int]) -> Rows:
        return self._tables.text_rows(ids)

    # ---- contract 4.3

    def _codec_prefix(self, speech: Speech) -> Rows:
        t = self._talker
        language = self.language_id(speech.language, speech.voice)
        if language is None:
            tags = [t.codec_nothink_id, t.codec_think_bos_id, t.codec_think_eos_id]
        else:
            tags = [t.codec_think_id, t.codec_think_bos_id, language, t.codec_think_eos_id]
        ends = self._tables.codec_rows([t.codec_pad_id, t.codec_bos_id])
        return np.concatenate([self._tables.codec_rows(tags), self._speaker(speech), ends])

    def _speaker(self, speech: Speech) -> Rows:
        hidden = self._talker.hidden_size
        if speech.speaker is not None:
            vector = np.asarray(speech.speaker, dtype=np.float32)
            if vector.shape != (hidden,):
                raise UsageError(f"The speaker vector must have {hidden} values for this model, but has shape {vector.shape}.")
            if not np.isfinite(vector).all():
                raise UsageError("The speaker vector holds NaN or infinite values.")
            return vector[None]
        if speech.voice is None:
            return np.zeros((0, hidden), dtype=np.float32)
        if speech.voice not in self._talker.spk_id:
            raise choose("voice", speech.voice, self._talker.spk_id)
        return self._tables.codec_rows([self._talker.spk_id[speech.voice]])

    # ---- contract 4.4

    def _plain(self, speech: Speech, text: list[int], pad: Rows) -> tuple[Rows, Rows]:
        codec_pad, codec_begin = self._tables.codec_rows([self._talker.codec_pad_id, self._talker.codec_bos_id])
        rows = self._text([*text, self._config.tts_eos_token_id])
        if speech.non_streaming:
            return np.concatenate([rows + codec_pad, (pad + codec_begin)[None]]), rows[:0]
        return rows[:1] + codec_begin, rows[1:]

    def _in_context(self, speech: Speech, text: list[int], pad: Rows) -> tuple[Rows, Rows]:
        if speech.reference is None:
            raise ValueError("no reference")
        codes = self._checked(speech.reference.codes)
        spoken = self._text([*self._reference(speech.reference.text), *text, self._config.tts_eos_token_id])
        codec_pad, codec_begin = self._tables.codec_rows([self._talker.codec_pad_id, self._talker.codec_bos_id])
        codec = np.concatenate([codec_begin[None], self._tables.frame_rows(codes)])
        if speech.non_streaming:
            return np.concatenate([spoken + codec_pad, codec + pad]), spoken[:0]
        count = len(codec)
        beside = np.repeat(pad[None], count, axis=0)
        beside[: min(count, len(spoken))] = spoken[:count]
        return beside + codec, spoken[count:]

    def _checked(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        groups, size = self._talker.num_code_groups, self._talker.predictor.vocab_size
        given = np.asarray(codes)
        if given.ndim != 2 or given.shape[1] != groups or not len(given) or not np.issubdtype(given.dtype, np.integer):
            raise UsageError(
                f"Reference codes must be whole numbers of shape (frames, {groups}) with at least one frame, "
                f"but are {given.dtype} of shape {given.shape}."
            )
        if given.min() < 0 or given.max() >= size:
            raise UsageError(f"Reference codes must be from 0 to {size - 1}, but range from {given.min()} to {given.max()}.")
        return given.astype(np.int64)
