"""Sockets that listen, for HTTP and for Wyoming, and what clients give to reach them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ouzel.errors import OuzelError
from ouzel.serve.address import Address, remove_stale

BACKLOG = 128


def bind(host: str, port: int, option: str = "--port") -> socket.socket:
    """A listening socket. option: of the command line, to choose another. Raises OuzelError in one sentence."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (socket.gaierror, UnicodeError) as error:  # the second of what cannot be a name
        raise OuzelError(f"The address {host!r} is not known here: {getattr(error, 'strerror', error)}.") from error
    listener = socket.socket(family, kind, proto)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)  # who connects from now on waits, and is not refused
    except OSError as error:
        listener.close()
        raise OuzelError(f"Cannot listen on {host}:{port}: {error.strerror or error}; choose another {option}.") from error
    return listener


@contextmanager
def wyoming_listener(uri: str) -> Iterator[socket.socket]:
    """A listening socket while the block runs; the file of a Unix socket goes with it. Raises OuzelError in one sentence."""
    address = Address.parse(uri)
    if not address.path:
        with bind(address.host, address.port, "--wyoming") as listener:
            yield listener
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            remove_stale(address.path)
            listener.bind(address.path)
            listener.listen(BACKLOG)
        except OSError as error:
            reason = error.strerror or error
            raise OuzelError(f"Cannot listen on {address.path}: {reason}; choose another --wyoming.") from error
        try:
            yield listener
        finally:
            Path(address.path).unlink(missing_ok=True)


def address_of(listener: socket.socket, scheme: str = "http") -> str:
    """What a client gives to reach a listening socket."""
    if listener.family == socket.AF_UNIX:
        return f"unix://{listener.getsockname()}"
    host, port = listener.getsockname()[:2]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
