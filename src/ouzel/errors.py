"""The errors a user may see. Anything that is not an OuzelError is a bug and shows a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class OuzelError(Exception):
    """Show this sentence to the user: what is wrong, what to do, which values are valid.

    param: the field of SpeechRequest that it is about, where it is about one; "ref_audio" for a recording.
    """

    exit_code = 1

    def __init__(self, message: str = "", *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


class UsageError(OuzelError):
    """The request cannot be honoured as asked: bad text, voice, option, file or configuration."""

    exit_code = 2


class ConfigError(UsageError):
    """A deploy YAML, a flag or a setting is malformed or contradicts itself."""


class CheckpointError(UsageError):
    """A checkpoint in the Hugging Face layout is unreadable, incomplete or not of a known family."""


class BundleError(UsageError):
    """A converted bundle is missing, truncated, tampered with or from an incompatible version."""


class MissingExtraError(UsageError):
    """An optional dependency is needed; the message names the pip command."""


class SynthesisError(OuzelError):
    """Generation failed at work: non-finite samples, zero frames, a runtime that broke down."""


class ClosedError(OuzelError):
    """The voice or utterance was closed while, or before, it was used."""


def choose(kind: str, value: object, valid: Iterable[object], *, error: type[OuzelError] = UsageError) -> OuzelError:
    """Build (not raise) the error for an unknown value: names it, the nearest match and every valid choice."""
    names = [str(v) for v in valid]
    near = difflib.get_close_matches(str(value), names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    listing = ", ".join(names) if names else "none"
    return error(f"Unknown {kind} {str(value)!r}.{hint} Valid choices: {listing}.", param=kind if kind.isidentifier() else None)
