"""A real browser for the tests of the page: Debian's Chromium without a window, and ears inside it.

It needs no sound device: Chromium then plays into a sink that keeps time. The tests really click and type, so that the rules on
when a page may make a sound apply; no switch turns them off.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

INSECURE = "plain.test"  # leads here, but a browser does not know that this is no other machine
EARS = """
(() => {
  const ears = (window.ears = { blocks: [], fed: [], analyser: null, seeds: [], reads: [] });
  const listen = async (track) => {
    const reader = new MediaStreamTrackProcessor({ track, maxBufferSize: 10000 }).readable.getReader();
    for (;;) {
      const { value } = await reader.read();
      if (!value) return;
      const block = new Float32Array(value.numberOfFrames);
      value.copyTo(block, { planeIndex: 0, format: "f32-planar" });
      value.close();
      ears.blocks.push(block);
    }
  };
  const { connect } = AudioNode.prototype;
  window.AudioContext = class extends AudioContext {
    constructor(...options) {
      super(...options);
      // One node that everything goes through, since what is connected later hears later.
      this.ear = new GainNode(this);
      ears.analyser = new AnalyserNode(this, { fftSize: 128 });
      const tap = new MediaStreamAudioDestinationNode(this, { channelCount: 1 });
      for (const node of [ears.analyser, tap, this.destination]) connect.call(this.ear, node);
      // What nobody plays into is not asked for samples, and the tap then keeps its last few.
      const silence = new ConstantSourceNode(this, { offset: 0 });
      connect.call(silence, this.ear);
      silence.start();
      listen(tap.stream.getAudioTracks()[0]);
    }
  };
  AudioNode.prototype.connect = function (to, ...rest) {
    return connect.call(this, to instanceof AudioDestinationNode ? to.context.ear : to, ...rest);
  };
  const { postMessage } = MessagePort.prototype;
  MessagePort.prototype.postMessage = function (message, ...rest) {
    if (message.samples) ears.fed.push(message.samples.slice());
    return postMessage.call(this, message, ...rest);
  };
  const { copyToChannel } = AudioBuffer.prototype;
  AudioBuffer.prototype.copyToChannel = function (samples, ...rest) {
    ears.fed.push(samples.slice());
    return copyToChannel.call(this, samples, ...rest);
  };
  const { fetch } = window;
  window.fetch = async (...asked) => {
    const answer = await fetch(...asked);
    if (answer.headers.has("x-seed")) ears.seeds.push(answer.headers.get("x-seed"));
    return answer;
  };
  const { read } = ReadableStreamDefaultReader.prototype;
  ReadableStreamDefaultReader.prototype.read = async function () {
    const found = await read.call(this);
    if (found.value instanceof Uint8Array) ears.reads.push(found.value.length);
    return found;
  };
})();
"""


class Browser:
    """One tab. Elements are named by their id."""

    def __init__(self, driver) -> None:
        self.driver = driver

    def open(self, url: str, *, until: str = "Ready.") -> None:
        """until: what the status says once the page is there."""
        self.logs()
        self.driver.get(url)
        self.wait(lambda: self.text("status") == until)

    def run(self, script: str, *args: object):
        return self.driver.execute_script(script, *args)

    def element(self, name: str):
        return self.driver.find_element("id", name)

    def text(self, name: str) -> str:
        return self.run("return document.getElementById(arguments[0]).textContent", name)

    def click(self, name: str) -> None:
        self.element(name).click()

    def write(self, name: str, text: str) -> None:
        """At once, not key by key."""
        self.run("document.getElementById(arguments[0]).value = arguments[1]", name, text)

    def keys(self, *keys: str) -> None:
        """Whatever has the focus gets them; all are held down together."""
        from selenium.webdriver import ActionChains

        chain = ActionChains(self.driver)
        for key in keys[:-1]:
            chain.key_down(key)
        chain.send_keys(keys[-1])
        for key in keys[:-1]:
            chain.key_up(key)
        chain.perform()

    @property
    def focused(self) -> str:
        return self.run("return document.activeElement.id")

    def wait(self, true: Callable[[], object], timeout: float = 60) -> None:
        began = time.monotonic()
        while not true():
            shown = {name: self.text(name) for name in ("status", "problem", "ttfa", "length", "depth", "gaps")}
            assert time.monotonic() - began < timeout, f"{shown} {self.logs()[0]}"
            time.sleep(0.02)

    # ---- what comes out

    @property
    def loudest(self) -> float:
        """Of the latest 128 samples at the output of the audio graph."""
        return self.run(
            "if (!ears.analyser) return 0;"
            "const x = new Float32Array(128); ears.analyser.getFloatTimeDomainData(x); return Math.max(...x.map(Math.abs))"
        )

    def heard(self) -> np.ndarray:
        """float32; every sample that reached the end of the audio graph since the page was opened."""
        return self._samples("blocks")

    def fed(self) -> np.ndarray:
        """float32; every sample that the browser was given to play."""
        return self._samples("fed")

    def _samples(self, name: str) -> np.ndarray:
        blocks = self.run("return ears[arguments[0]].map((block) => Array.from(block))", name)
        return np.concatenate([np.array(block, np.float32) for block in blocks]) if blocks else np.zeros(0, np.float32)

    def wait_heard(self, count: int, timeout: float = 60) -> None:
        """Until so many samples that are not zero are in `heard`."""
        script = "let n = 0; for (const block of ears.blocks) for (const x of block) n += x !== 0; return n"
        self.wait(lambda: self.run(script) >= count, timeout)

    def logs(self) -> tuple[list[str], list[str]]:
        """(messages in the console, addresses that were asked for) since the last call."""
        console = [f"{entry['level']} {entry['message']}" for entry in self.driver.get_log("browser")]
        asked = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                asked.append(message["params"]["request"]["url"])
        return console, asked

    def look(self, scheme: str, width: int, height: int) -> None:
        """scheme: light or dark."""
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Skips where there is no Chromium; fails there in CI."""
    found = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in found:
        missing = "The page was not tried in a browser: that needs Debian's chromium and chromium-driver (make browser)."
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = found[0]
    options.add_argument("--headless=new")
    options.add_argument("--no-sandbox")  # it refuses to start as root with one
    options.add_argument(f"--host-resolver-rules=MAP {INSECURE} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, Service(found[1]))
    try:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": EARS})
        yield Browser(driver)
    finally:
        driver.quit()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """Left on an empty page, so that nothing of a test goes on."""
    chromium.look("light", 900, 900)
    yield chromium
    chromium.driver.get("about:blank")
