"""Why a recording is not read: one sentence, which begins with the field that it is about."""

from __future__ import annotations

from ouzel.errors import UsageError


def refused(reason: str) -> UsageError:
    return UsageError(f"ref_audio: {reason}", param="ref_audio")
