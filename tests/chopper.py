"""A connection that delivers what it likes when it likes: between a client and a server, it cuts the answers anywhere."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

SIZES = (101, 20001, 1, 16383, 3, 30001)  # bytes
REST_S = 0.05  # so that they are not put together again on the way


@contextmanager
def chopped(url: str) -> Iterator[str]:
    """The address that leads to `url` that way."""
    target = urlsplit(url)
    listener = socket.create_server(("127.0.0.1", 0))
    open_ones: list[socket.socket] = [listener]

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listener.accept()
                far = socket.create_connection((target.hostname, target.port))
                near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                open_ones.extend((near, far))
                for source, sink, sizes in ((near, far, (65536,)), (far, near, SIZES)):
                    threading.Thread(target=_pass, args=(source, sink, sizes), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        for one in open_ones:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def _pass(source: socket.socket, sink: socket.socket, sizes: tuple[int, ...]) -> None:
    with contextlib.suppress(OSError):
        for size in itertools.cycle(sizes):
            data = source.recv(size)
            if not data:
                break
            sink.sendall(data)
            time.sleep(REST_S if len(sizes) > 1 else 0)
        sink.shutdown(socket.SHUT_WR)
