"""The text side of a voice: how a text becomes the talker's text ids. The bundle's manifest names the kind under `tokenizer`.

`hf_bpe`: Qwen2's BPE, as the published checkpoints have it. `phone_track`: English phones with durations and pitch, an id a
frame; a checkpoint has it when there is a phone_track.json in its folder.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from ...errors import BundleError, CheckpointError, OuzelError, choose
from .config import ModelConfig
from .phone_tokenizer import PROSODY, TRACK, PhoneTokenizer, load_phone_tokenizer
from .tokenizer import TextTokenizer, load_tokenizer, read_tokenizer

if TYPE_CHECKING:
    from ouzel.bundle import Bundle, BundleWriter

TOKENIZER = "tokenizer.json"
BPE, PHONES = TextTokenizer.kind, PhoneTokenizer.kind
KINDS = (BPE, PHONES)


class Tokenizer(Protocol):
    """Text to ids."""

    @property
    def kind(self) -> str:
        """The manifest's name for it."""

    @property
    def aligned(self) -> bool:
        """Whether there is an id for each codec frame, so that ids come along with the frames and speed is theirs to tell."""

    def speaking(self, voice: str | None, speed: float) -> Self:
        """The tokenizer for texts in this voice at this speed."""

    def encode(self, text: str) -> list[int]:
        """Ids of `text`, never a control token's."""

    def estimate(self, text: str) -> int:
        """About as many ids as `encode` gives, quickly; 0 exactly when it gives none."""

    def turn(self, role: str, text: str) -> list[int]:
        """Ids of a turn of the chat template: the role, a line break, the text; the first two take one id each."""

    @property
    def newline(self) -> list[int]:
        """Ids of the line break after a turn: one."""

    def token_id(self, token: str) -> int | None:
        """Id of a control token by its name."""

    def review(self, text: str) -> tuple[str, ...]:
        """Sentences on what of the text will not be spoken, mostly none. UsageError when nothing will."""


def read_text_side(folder: Path, config: ModelConfig) -> Tokenizer:
    """The text side of a checkpoint folder. CheckpointError when files are missing, damaged or of another model."""
    found: Tokenizer
    if os.path.lexists(folder / TRACK):
        found = load_phone_tokenizer(folder / TRACK, folder / PROSODY, CheckpointError)
    else:
        found = read_tokenizer(folder)
    check_belongs(found, config)
    return found


def load_text_side(bundle: Bundle, config: ModelConfig) -> Tokenizer:
    """The text side that a bundle's manifest names. BundleError as above, or for a kind that this ouzel does not know."""
    kind = bundle.manifest.tokenizer
    found: Tokenizer
    if kind == PHONES:
        found = load_phone_tokenizer(bundle.path(TRACK), bundle.path(PROSODY), BundleError)
    elif kind == BPE:
        found = load_tokenizer(bundle.path(TOKENIZER))
    else:
        raise choose(f"tokenizer in the manifest of {bundle.root}", kind, KINDS, error=BundleError)
    check_belongs(found, config, BundleError)
    return found


def write_text_side(tokenizer: Tokenizer, writer: BundleWriter) -> None:
    """Write the files of a text side into a bundle and name its kind."""
    writer.describe(tokenizer=tokenizer.kind)
    if isinstance(tokenizer, PhoneTokenizer):
        tokenizer.save(writer.path(TRACK).parent)
    elif isinstance(tokenizer, TextTokenizer):
        tokenizer.save(writer.path(TOKENIZER))
    else:
        raise TypeError(f"no files are known for a {type(tokenizer).__name__}")


def check_belongs(tokenizer: Tokenizer, config: ModelConfig, error: type[OuzelError] = CheckpointError) -> None:
    """Raise `error` when the ids, the size or the voices differ from what config.json says."""
    stated = {"<|im_start|>": config.im_start_token_id, "<|im_end|>": config.im_end_token_id}
    if isinstance(tokenizer, PhoneTokenizer):
        stated |= {"assistant": config.assistant_token_id, "<|tts_pad|>": config.tts_pad_token_id}
        stated |= {"<|tts_bos|>": config.tts_bos_token_id, "<|tts_eos|>": config.tts_eos_token_id}
    for token, number in stated.items():
        found = tokenizer.token_id(token)
        if found != number:
            raise error(f"The tokenizer gives {token} the id {found}, config.json says {number}; they do not belong together.")
    if isinstance(tokenizer, PhoneTokenizer):
        _check_track(tokenizer, config, error)


def _check_track(tokenizer: PhoneTokenizer, config: ModelConfig, error: type[OuzelError]) -> None:
    size, rows = tokenizer.track.size, config.talker.text_vocab_size
    if size > rows:
        raise error(f"{TRACK} has {size} ids, config.json says {rows}; they do not belong together.")
    voices, speakers = list(config.talker.spk_id), tokenizer.prosody.speakers
    if sorted(voices) != sorted(speakers):
        raise error(
            f"config.json names the voices {', '.join(voices) or 'none'}, but {TRACK} has {', '.join(speakers)}; "
            "they do not belong together."
        )
