"""Telling a service manager how far the server is (systemd's Type=notify)."""

from __future__ import annotations

import logging
import os
import socket

log = logging.getLogger("ouzel.serve")
VARIABLE = "NOTIFY_SOCKET"
READY, STOPPING = "READY=1", "STOPPING=1"


def notify(state: str) -> None:
    """Send `state` to the socket that the manager named, if it named one; a failure is no reason to stop."""
    address = os.environ.get(VARIABLE)
    if not address or not hasattr(socket, "AF_UNIX"):
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            # A leading @ stands for the zero byte of an abstract address.
            sender.sendto(state.encode(), "\0" + address[1:] if address.startswith("@") else address)
    except OSError as error:
        log.warning("the service manager at %s could not be told %s: %s", address, state, error)
