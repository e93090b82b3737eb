"""The page in a real browser against the real server."""

from __future__ import annotations

import time

import numpy as np
import pytest

from browser_case import INSECURE, browser, chromium  # noqa: F401  fixtures
from serve_case import served, toy_voice
from toys import Barrier, ToyTalker

LONG = " ".join(["word"] * 300)


@pytest.fixture(scope="module")
def server():
    with toy_voice() as voice, served(voice) as found:
        yield found
        found.wait_idle()


def pcm_of(server, **body) -> np.ndarray:
    answer = server.post({"response_format": "pcm", "stream_format": "audio", **body})
    assert answer.status_code == 200, answer.text
    return np.frombuffer(answer.content, "<i2").astype(np.float32) / 32768


def assert_heard(browser, expected: np.ndarray) -> None:
    """The loudspeaker got exactly these samples, in one piece, and silence around them."""
    browser.wait(lambda: np.count_nonzero(browser.heard()) >= np.count_nonzero(expected))
    heard = browser.heard()
    first = int(np.flatnonzero(heard)[0]) - int(np.flatnonzero(expected)[0])
    assert np.array_equal(heard[first : first + len(expected)], expected)
    assert np.count_nonzero(heard) <= np.count_nonzero(expected) + 400  # the end fades out


def test_click_and_hear(browser, embedded):
    with served(embedded) as server:
        browser.open(server.url)
        assert browser.run("return [...document.getElementById('voice').options].map((o) => o.value)") == ["fern", "moss"]
        browser.write("text", "Hello from the edge.")
        browser.click("speak")
        browser.wait(lambda: browser.loudest > 0.01)
        browser.wait(lambda: browser.text("status").startswith("Spoken: "))
        figures = {name: browser.text(name) for name in ("ttfa", "heard", "rtf", "depth", "gaps", "length")}
        print(figures)
        assert figures["ttfa"].endswith(" ms")
        assert figures["depth"] == "0.00 s"
        seed = browser.run("return ears.seeds[0]")
        expected = pcm_of(server, input="Hello from the edge.", voice="fern", seed=int(seed))
        assert figures["length"] == f"{len(expected) / 24000:.2f} s"
        if figures["gaps"] == "none":  # a busy machine may not keep up; gaps have a test of their own
            assert_heard(browser, expected)
        console, asked = browser.logs()
        assert console == []
        assert [url for url in asked if not url.startswith(server.url + "/")] == []
