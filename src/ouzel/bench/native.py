"""CPU time spent inside the runtime's graphs, by graph, so that what is left is Python's own."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ouzel.runtimes.onnxruntime import decoder, predictor, talker

_USERS = {"talker": talker, "predictor": predictor, "decoder": decoder}


class NativeTime:
    """CPU seconds of the calling thread inside each graph. Right for one-threaded sessions only."""

    def __init__(self) -> None:
        self.calls: dict[str, list[float]] = defaultdict(list)

    def take(self) -> dict[str, list[float]]:
        """The times of the calls since the last take, by stage, in order."""
        taken, self.calls = dict(self.calls), defaultdict(list)
        return taken


@contextmanager
def measured() -> Iterator[NativeTime]:
    """Time every graph run while inside: the stage modules' `run_bound` is wrapped (about 1 us a call) and put back."""
    found = NativeTime()
    originals = {name: module.run_bound for name, module in _USERS.items()}

    def wrap(name: str) -> Any:
        original = originals[name]

        def timed(session: Any, binding: Any) -> None:
            began = time.thread_time()
            original(session, binding)
            found.calls[name].append(time.thread_time() - began)

        return timed

    try:
        for name, module in _USERS.items():
            module.run_bound = wrap(name)  # type: ignore[attr-defined]  # a module attribute is replaced on purpose
        yield found
    finally:
        for name, module in _USERS.items():
            module.run_bound = originals[name]  # type: ignore[attr-defined]  # and put back
