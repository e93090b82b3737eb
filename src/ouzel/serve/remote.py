"""Fetching what a client points to over HTTP, within limits, and only from where the operator lets it.

The address of each hop is looked up once, checked, and connected to as a number, so that a name cannot mean one thing to the
check and another to the connection. No proxy, no cookie, no password.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Self
from urllib.parse import SplitResult, quote, urljoin, urlsplit

import h11

from ouzel.audio.recording import refused
from ouzel.errors import UsageError
from ouzel.serve.public_address import is_public

MAX_URL = 8192
MAX_REDIRECTS = 3
CONNECT_S = 5.0  # to one of a name's addresses
MAX_LOOKUPS = 8  # at once; a resolver can be slow, and cannot be interrupted
_PORTS = {"http": 80, "https": 443}
_REDIRECTS = (301, 302, 303, 307, 308)
_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,252})", re.ASCII)
_NUMBERS = re.compile(r"\[[0-9a-f:.]{2,45}\]", re.ASCII)
_KEPT = "/%?&=:@!$'()*+,;~-._"

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Target:
    """One hop. host: lower-case, a name, IPv4, or IPv6 in brackets. path: with the query, as it is sent."""

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def parse(cls, url: str) -> Self:
        """Raises UsageError for anything but a plain http or https address."""
        if len(url) > MAX_URL:
            raise refused(f"the address has more than {MAX_URL:,} characters.")
        if not url.isprintable() or " " in url or "\\" in url:
            raise refused("the address has characters in it that no address has.")
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise refused("the address is malformed.") from None
        if parts.scheme not in _PORTS:
            raise refused(f"only http and https addresses are fetched, not {parts.scheme[:20] or 'others'}.")
        if "@" in parts.netloc:
            raise refused("the address must not have a user name or password in it.")
        usual = _PORTS[parts.scheme]
        if port is not None and port != usual and port < 1024:
            raise refused(f"no recording is fetched from port {port}.")  # other protocols live there
        path = quote(parts.path or "/", safe=_KEPT) + (f"?{quote(parts.query, safe=_KEPT)}" if parts.query else "")
        return cls(parts.scheme, _host(parts), usual if port is None else port, path)

    @property
    def authority(self) -> str:
        return self.host if self.port == _PORTS[self.scheme] else f"{self.host}:{self.port}"

    @property
    def names(self) -> tuple[str, str]:
        """What an operator may call it."""
        return self.host, f"{self.host}:{self.port}"


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    elif not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            host = ""
    if not (_NAME.fullmatch(host) or _NUMBERS.fullmatch(host)):
        raise refused("the address has no host, or a malformed one.")
    return host


class Remote:
    """private_hosts: HOST or HOST:PORT, lower-case, whose addresses need not be public. resolve: host and port -> IP addresses;
    raises OSError. max_bytes: of a recording. timeout_s: for all of it."""

    def __init__(
        self, private_hosts: Collection[str], *, max_bytes: int, timeout_s: float, resolve: Resolve | None = None
    ) -> None:
        self._private = frozenset(private_hosts)
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._resolve = resolve or Lookup()
        self._tls: ssl.SSLContext | None = None

    async def fetch(self, url: str) -> bytes:
        """Raises UsageError in one sentence. Cancelling it closes the connection."""
        try:
            async with asyncio.timeout(self._timeout_s):
                for _ in range(MAX_REDIRECTS + 1):
                    found = await self._get(Target.parse(url))
                    if isinstance(found, bytes):
                        return found
                    url = urljoin(url, found)
        except TimeoutError:
            raise refused(f"the recording could not be fetched within {self._timeout_s:g} s.") from None
        raise refused(f"the address redirects more than {MAX_REDIRECTS} times.")

    async def _get(self, target: Target) -> bytes | str:
        """The body, or where a redirect leads."""
        reader, writer = await self._connect(target)
        try:
            return await self._exchange(target, reader, writer)
        except h11.RemoteProtocolError:
            raise refused(f"{target.host} did not give a whole HTTP answer.") from None
        except OSError as error:  # ssl.SSLError is one
            raise _unreachable(target, error) from None
        finally:
            writer.transport.abort()

    async def _connect(self, target: Target) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        context = None
        if target.scheme == "https":
            if self._tls is None:
                self._tls = await asyncio.to_thread(ssl.create_default_context)
            context = self._tls
        failure: OSError = OSError("no address")
        for address in await self._addresses(target):
            name = target.host.strip("[]") if context else None
            try:
                async with asyncio.timeout(CONNECT_S):
                    return await asyncio.open_connection(address, target.port, ssl=context, server_hostname=name)
            except TimeoutError:
                failure = OSError("no answer")
            except OSError as error:
                failure = error
        raise _unreachable(target, failure)

    async def _addresses(self, target: Target) -> Sequence[str]:
        """The numbers that may be connected to. Raises UsageError if there is none."""
        try:
            found = await self._resolve(target.host.strip("[]"), target.port)
        except OSError:
            raise refused(f"the host {target.host} is not known.") from None
        if self._private.isdisjoint(target.names):
            found = [address for address in found if is_public(address)]
            if not found:
                raise refused(f"{target.host} has no public address; --private-audio-host of the server admits single hosts.")
        return found

    async def _exchange(self, target: Target, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes | str:
        http = h11.Connection(h11.CLIENT)
        headers = [
            ("host", target.authority),
            ("user-agent", "ouzel"),
            ("accept", "audio/*, */*;q=0.1"),
            ("accept-encoding", "identity"),
            ("connection", "close"),
        ]
        writer.write(http.send(h11.Request(method="GET", target=target.path, headers=headers)) or b"")
        writer.write(http.send(h11.EndOfMessage()) or b"")
        await writer.drain()
        body = bytearray()
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                http.receive_data(await reader.read(1 << 16))
            elif isinstance(event, h11.Response):
                place = self._check(target, event)
                if place is not None:
                    return place
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > self._max_bytes:
                    raise self._too_large()
            elif isinstance(event, h11.EndOfMessage):
                return bytes(body)
            elif event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                raise refused(f"{target.host} did not give a whole HTTP answer.")

    def _check(self, target: Target, response: h11.Response) -> str | None:
        """Where it redirects to, None if a body follows. Raises UsageError."""
        headers = {name.decode(): value.decode("latin-1") for name, value in response.headers}
        if response.status_code in _REDIRECTS and "location" in headers:
            return headers["location"]
        if response.status_code != 200:
            raise refused(f"{target.host} answered {response.status_code}, not with a recording.")
        length = headers.get("content-length", "")
        if length.isdigit() and int(length[:20]) > self._max_bytes:
            raise self._too_large()
        return None

    def _too_large(self) -> UsageError:
        return refused(f"the recording has more than {self._max_bytes:,} bytes.")


def _unreachable(target: Target, error: OSError) -> UsageError:
    if isinstance(error, ssl.SSLError):
        reason = getattr(error, "verify_message", "") or error.reason or "no TLS"
    else:
        reason = os.strerror(error.errno) if error.errno else str(error)
    return refused(f"{target.host} could not be reached: {reason}.")


class Lookup:
    """The system's resolver, in threads that nothing waits for: it may take as long as a stranger's name server likes."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(MAX_LOOKUPS)

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[str]] = loop.create_future()

        def ended(found: list[str] | OSError) -> None:
            self._free.release()
            if answer.done():  # cancelled
                return
            if isinstance(found, OSError):
                answer.set_exception(found)
            else:
                answer.set_result(found)

        def look() -> None:
            found: list[str] | OSError
            try:
                rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                found = list(dict.fromkeys(str(row[4][0]) for row in rows))
            except (OSError, UnicodeError) as error:  # the second of what cannot be a name
                found = OSError(str(error))
            try:
                loop.call_soon_threadsafe(ended, found)
            except RuntimeError:
                return  # the server has ended meanwhile

        threading.Thread(target=look, name="ouzel-lookup", daemon=True).start()
        return await answer
