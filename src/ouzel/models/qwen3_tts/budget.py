"""How many codebook-0 ids one segment may take before it counts as a runaway (contract 5.4, applied to every task)."""

from __future__ import annotations

LEAST = 192  # ids a short text may take: 15 s, room for a slow "Mm ..."
PER_TOKEN = 12  # ids a text token may take: a second of audio each, speech needs about a third of that


def frame_budget(text_tokens: int, configured: int, requested: int | None = None) -> int:
    """max_tokens of a segment.

    text_tokens: PromptRows.text_tokens; configured: the deploy file's max_tokens; requested: the request's max_new_tokens,
    which is honoured as given, up to `configured`.
    """
    if requested is not None:
        return min(configured, requested)
    return min(configured, max(LEAST, PER_TOKEN * text_tokens))
