"""Where Wyoming clients find the server: a TCP address, or the path of a Unix socket."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import stat
from dataclasses import dataclass
from typing import Self

from ouzel.errors import ConfigError

FORMS = "tcp://HOST:PORT or unix:///PATH"
_TCP = re.compile(r"tcp://(?:\[(?P<six>[^\[\]/]+)\]|(?P<host>[^:\[\]/@]+)):(?P<port>[0-9]{1,5})/?")
_UNIX = "unix://"


@dataclass(frozen=True, slots=True)
class Address:
    """host, port: of TCP, port 0 takes a free one; path: of a Unix socket instead."""

    host: str = ""
    port: int = 0
    path: str = ""

    @classmethod
    def parse(cls, uri: str) -> Self:
        """From a URI. Raises ConfigError that names the forms."""
        if uri.startswith(_UNIX) and len(uri) > len(_UNIX):
            return cls(path=uri.removeprefix(_UNIX))
        found = _TCP.fullmatch(uri)
        if found is None or int(found["port"]) > 65535:
            raise ConfigError(f"{uri!r} is no address to listen on; give {FORMS}.")
        return cls(found["six"] or found["host"], int(found["port"]))

    @property
    def local(self) -> bool:
        """Whether only this machine reaches it."""
        return bool(self.path) or is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches `host`; a name other than localhost may lead anywhere."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def remove_stale(path: str) -> None:
    """Remove the socket file that a killed server left; one that somebody listens on stays, and so does any other file.

    Raises OSError.
    """
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(path)
    except FileNotFoundError:
        return
    except ConnectionRefusedError:
        os.unlink(path)
