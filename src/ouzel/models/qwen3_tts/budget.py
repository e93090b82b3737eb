"""How many codebook-0 ids one segment may take before it counts as a runaway (contract 5.4, applied to every task)."""

from __future__ import annotations

LEAST = 192  # ids a short text may take: 15 s, room for a slow "Mm ..."
PER_TOKEN = 12  # ids a text token may take: a second of audio each, speech needs about a third of that
SLACK = 10  # frames that a voice with a text id a frame may go on after the last: 0.8 s


def frame_budget(text_tokens: int, configured: int, requested: int | None = None) -> int:
    """max_tokens of a segment.

    text_tokens: PromptRows.text_tokens; configured: the deploy file's max_tokens; requested: the request's max_new_tokens,
    which is honoured as given, up to `configured`.
    """
    if requested is not None:
        return min(configured, requested)
    return min(configured, max(LEAST, PER_TOKEN * text_tokens))


def aligned_budget(frames: int, configured: int, requested: int | None = None) -> int:
    """max_tokens of a segment whose text has an id a frame: `frames` ids, the end id and some slack; otherwise as above."""
    return min(configured, requested if requested is not None else frames + SLACK + 1)
