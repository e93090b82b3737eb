"""A wake-up that may be given from anywhere, a finaliser included."""

from __future__ import annotations

import queue


class Signal:
    """Level-triggered and passive: `set` before or during `wait` ends the wait.

    Built on SimpleQueue, whose `put` is re-entrant: the garbage collector may run a finaliser inside any critical section of
    the same thread, so what a finaliser does must not take a lock. A worker clears the signal, looks at the shared state, and
    only then waits.
    """

    def __init__(self) -> None:
        self._tokens: queue.SimpleQueue[None] = queue.SimpleQueue()

    def set(self) -> None:
        self._tokens.put(None)

    def clear(self) -> None:
        try:
            while True:
                self._tokens.get_nowait()
        except queue.Empty:
            return

    def wait(self) -> None:
        """Sleep until the next `set`; every change of state that matters to a worker gives one."""
        self._tokens.get()
