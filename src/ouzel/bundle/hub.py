"""The Hugging Face hub as `ouzel pull` needs it: what a repository holds, one file with resume, failures in one sentence."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from ouzel.bundle.manifest import safe_path
from ouzel.errors import MissingExtraError, OuzelError, UsageError

if TYPE_CHECKING:
    from huggingface_hub import HfApi


_HTTP_CLIENTS = frozenset({"httpx", "httpx2", "httpcore", "httpcore2"})
_PARTIAL_CONTENT = 206
_TRIES = 5
_WAIT_S = 1.0
_TIMEOUT_S = 30.0  # without a byte; not of the whole file


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a repository; sha256 of large files, git_sha1 ("blob SIZE\\0" + content) of others, if stated."""

    path: str
    size: int
    sha256: str | None = None
    git_sha1: str | None = None


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository at one commit."""

    repo: str
    commit: str
    files: tuple[RemoteFile, ...]


class Hub:
    """One hub. endpoint: None = $HF_ENDPOINT or the public hub; token: None = $HF_TOKEN or the stored login, if any."""

    def __init__(self, endpoint: str | None = None, token: str | None = None) -> None:
        try:
            from huggingface_hub import HfApi, constants
            from huggingface_hub.utils import get_session
        except ImportError:
            raise MissingExtraError("Fetching models needs huggingface_hub; install it: pip install 'ouzel[pull]'.") from None
        if not hasattr(get_session(), "stream"):
            raise MissingExtraError("Fetching models needs huggingface_hub 1.0 or newer: pip install -U 'ouzel[pull]'.")
        self.endpoint = (endpoint or os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")
        if not self.endpoint.startswith(("http://", "https://")):
            raise UsageError(f"The hub's address {self.endpoint!r} must begin with http:// or https://.")
        self._token = token
        self._api: HfApi = HfApi(endpoint=self.endpoint, token=token, library_name="ouzel")

    def look(self, repo: str, revision: str | None = None) -> Remote:
        """What `repo` holds at `revision` (branch, tag or commit; None = main). Asks the server once."""
        try:
            info = self._api.model_info(repo, revision=revision, files_metadata=True)
        except Exception as error:
            raise self._explain(error, repo, revision) from error
        files = []
        for item in info.siblings or []:
            lfs = item.lfs
            size = lfs.size if lfs else item.size
            path = safe_path(item.rfilename, f"Repository {repo}") if item.rfilename != "manifest.json" else item.rfilename
            files.append(RemoteFile(path, size or 0, lfs.sha256 if lfs else None, None if lfs else item.blob_id))
        return Remote(repo, info.sha or revision or "main", tuple(files))

    def download(self, remote: Remote, file: RemoteFile, target: IO[bytes], start: int, count: Callable[[int], None]) -> None:
        """Append the bytes of `file` from offset `start` on to `target`, which stands there; `count` gets each block's size.

        Blocks are written as they arrive, so an interruption loses nothing (the hub library keeps no part). A dropped
        connection is taken up again with a Range request until that brings nothing new several times; then OuzelError.
        """
        tries = _TRIES
        while start < file.size:
            before = start
            try:
                for block in self._blocks(remote, file, start):
                    if block is None:  # the server began from the start although a part was asked for
                        count(-start)
                        start = before = 0
                        target.seek(0)
                        target.truncate()
                        continue
                    target.write(block)
                    start += len(block)
                    count(len(block))
                if start < file.size:
                    raise ConnectionError(f"only {start} of {file.size} bytes of {file.path} came")
                return
            except Exception as error:
                tries = _TRIES if start > before else tries - 1
                if tries == 0 or not _is_connection(error):
                    raise self._explain(error, remote.repo, remote.commit) from error
                time.sleep(_WAIT_S)

    def _blocks(self, remote: Remote, file: RemoteFile, start: int) -> Iterator[bytes | None]:
        from huggingface_hub import hf_hub_url
        from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

        headers = {**build_hf_headers(token=self._token, library_name="ouzel"), "Accept-Encoding": "identity"}
        if start:
            headers["Range"] = f"bytes={start}-"
        url = hf_hub_url(remote.repo, file.path, revision=remote.commit, endpoint=self.endpoint)
        with get_session().stream("GET", url, headers=headers, follow_redirects=True, timeout=_TIMEOUT_S) as response:
            hf_raise_for_status(response)
            if start and response.status_code != _PARTIAL_CONTENT:
                yield None
            yield from response.iter_bytes()

    def _explain(self, error: Exception, repo: str, revision: str | None) -> Exception:
        """The error to raise instead: a sentence for what a hub or a network does, the error itself for a bug of ours."""
        from huggingface_hub import errors

        status = getattr(getattr(error, "response", None), "status_code", None)
        if isinstance(error, OuzelError):
            return error
        if isinstance(error, errors.HFValidationError):
            return UsageError(f"{repo!r} is not a repository name; write OWNER/NAME, or OWNER/NAME@REVISION.")
        if isinstance(error, errors.GatedRepoError):
            return UsageError(
                f"Repository {repo} is gated: accept its terms at {self.endpoint}/{repo}, "
                "then set HF_TOKEN to a token of that account."
            )
        if isinstance(error, errors.RevisionNotFoundError):
            return UsageError(f"Repository {repo} has no revision {revision!r} at {self.endpoint}.")
        if isinstance(error, errors.RepositoryNotFoundError):
            return UsageError(
                f"Repository {repo} was not found at {self.endpoint}: check the spelling; a private one needs HF_TOKEN."
            )
        if status in (401, 403):
            return UsageError(f"{self.endpoint} refused access to {repo} (HTTP {status}): check the token in HF_TOKEN.")
        if status is not None:
            return OuzelError(f"{self.endpoint} answered HTTP {status} for {repo}; try again later, the download will resume.")
        if isinstance(error, errors.OfflineModeIsEnabled):
            return UsageError("HF_HUB_OFFLINE is set, so nothing can be fetched; unset it or use a local checkpoint.")
        if _is_connection(error):
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            return OuzelError(f"The connection to {self.endpoint} failed ({reason}); run the same command again to resume.")
        return error


def _is_connection(error: Exception) -> bool:
    """Whether the network failed, rather than the server's answer or the local disk."""
    if getattr(error, "response", None) is not None:
        return False
    # Which client the hub library uses depends on its version.
    return isinstance(error, ConnectionError) or type(error).__module__.partition(".")[0] in _HTTP_CLIENTS
