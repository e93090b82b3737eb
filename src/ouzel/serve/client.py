"""The connection that a response goes to: it may end at any time, and then nothing may go on for it."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Coroutine
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send


class LiveResponse(Response):
    """A response that is made while its client listens: `answer` sends all of it, and ends when the client leaves."""

    def __init__(self) -> None:
        self.status_code = 200
        self.background = None
        self.body = b""
        self.init_headers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await while_connected(receive, self.answer(scope, receive, send))

    @abstractmethod
    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None: ...


async def while_connected(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Run `work` until it is done or the client has gone, whichever is first; afterwards no part of it runs any more.

    The request's body must have been read. Raises what `work` raises; a client that has gone is no error.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)
    if not task.cancelled():
        task.result()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
