"""What a request needs a thread for, and what remains of it once nobody waits any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
MOST = 2  # at once, further ones wait: each keeps a core busy


class Workers:
    """A few threads of their own, so that long work does not stand in the way of short."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(MOST, "ouzel-recording")
        self._futures: set[Future[Any]] = set()

    @property
    def idle(self) -> bool:
        return not self._futures

    async def run(self, work: Callable[[threading.Event], T]) -> T:
        """The result of `work` in a thread. Cancelling this does not wait for it, but sets the event that it is given."""
        abandoned = threading.Event()
        future = self._pool.submit(work, abandoned)
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            abandoned.set()
            raise
