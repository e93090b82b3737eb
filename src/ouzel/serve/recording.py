"""The recording that a client names in `ref_audio`, from wherever the operator lets it come: to samples."""

from __future__ import annotations

import base64
import binascii
from urllib.parse import unquote_to_bytes

from ouzel.audio.media import Recording, decode
from ouzel.audio.recording import refused
from ouzel.serve.local_media import FLAG, check_folder, path_of, read_below
from ouzel.serve.remote import Remote
from ouzel.serve.settings import ServeSettings
from ouzel.serve.workers import Workers

FORMS = "a data: URI (data:audio/wav;base64,…), an http: or https: address, or a file: address"
ALWAYS = "A data: URI is always taken."


class Recordings:
    """One per server. Nothing is kept of what was read."""

    def __init__(self, settings: ServeSettings, workers: Workers, remote: Remote | None = None) -> None:
        self._most = settings.max_recording_bytes
        self._workers = workers
        folder = settings.allowed_local_media_path
        self._folder = None if folder is None else check_folder(folder)
        self._remote: Remote | None = None
        if settings.allow_remote_audio:
            self._remote = remote or Remote(
                settings.private_audio_hosts, max_bytes=self._most, timeout_s=settings.recording_timeout_s
            )

    async def read(self, source: str, *, path: bool = False) -> Recording:
        """path: a source that names no scheme is the path of a file.

        Raises UsageError in one sentence; it names the flag that would allow what this server does not. Cancelling it ends it.
        """
        scheme, colon, _ = source[:10].partition(":")
        kind = scheme.lower() if colon else ""
        most, folder, remote = self._most, self._folder, self._remote
        if kind == "data":
            return await self._workers.run(lambda abandoned: decode(_inline(source, most), abandoned))
        if kind in ("http", "https"):
            if remote is None:
                raise refused(f"this server fetches no recordings; --allow-remote-audio would allow it. {ALWAYS}")
            data = await remote.fetch(source)
            return await self._workers.run(lambda abandoned: decode(data, abandoned))
        if kind == "file" or (path and (not colon or source.startswith("/"))):
            if folder is None:
                raise refused(f"this server reads no files of its own; {FLAG} would allow it. {ALWAYS}")
            name = path_of(source) if kind == "file" else source
            return await self._workers.run(lambda abandoned: decode(read_below(folder, name, most), abandoned))
        raise refused(f"a recording is {FORMS}.")


def _inline(uri: str, most: int) -> bytes:
    """The bytes in a data: URI. Raises UsageError."""
    head, comma, text = uri.partition(",")
    if not comma or not head.lower().rstrip().endswith(";base64"):
        raise refused("a data: URI of a recording is data:audio/wav;base64,… (or of another type).")
    if len(text) > most * 2:  # base64 takes 4/3, more where it has escapes
        raise refused(f"the recording has more than {most:,} bytes.")
    packed = b"".join((unquote_to_bytes(text) if "%" in text else text.encode("ascii", "replace")).split())
    try:
        data = base64.b64decode(packed + b"=" * (-len(packed) % 4), validate=True)
    except binascii.Error:
        raise refused("what follows ;base64, in the data: URI is not base64.") from None
    if len(data) > most:
        raise refused(f"the recording has more than {most:,} bytes.")
    return data
