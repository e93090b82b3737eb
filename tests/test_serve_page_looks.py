"""How the page looks, light and dark, wide and narrow. Each run leaves pictures in build/page."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from ouzel.api import load
from serve_case import served

PICTURES = Path(__file__).parents[1] / "build" / "page"
TEXT = "Hello from the edge. This speech is made on the device itself, and you hear it while it is being made."
# WCAG 2.2, 1.4.3: the contrast of every element that has text of its own, with the first opaque ground behind it.
CONTRASTS = """
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const ground = (e) => { const c = parse(getComputedStyle(e).backgroundColor);
  return c.length === 4 && c[3] === 0 ? (e.parentElement ? ground(e.parentElement) : [255, 255, 255]) : c; };
const found = [];
for (const e of document.querySelectorAll("main *")) {
  if (e.disabled || !e.checkVisibility() || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
  const [a, b] = [light(parse(getComputedStyle(e).color)), light(ground(e))];
  found.push([e.textContent.trim().slice(0, 30), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)]);
}
return found;
"""


def picture(browser, name: str) -> bytes:
    """A PNG of the whole page, also in build/page."""
    height = browser.run("return document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": browser.run("return innerWidth"), "height": height, "scale": 1}
    shot = browser.driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
    PICTURES.mkdir(parents=True, exist_ok=True)
    data = base64.b64decode(shot["data"])
    (PICTURES / f"{name}.png").write_bytes(data)
    return data


@pytest.fixture(scope="module")
def spoken(chromium):
    """The page after a text, as it comes out of the box."""
    with load("embedded", threads=1) as voice, served(voice) as server:
        chromium.look("light", 760, 900)
        chromium.open(server.url)
        chromium.write("text", TEXT)
        chromium.click("speak")
        chromium.wait(lambda: seconds(chromium, "length") - seconds(chromium, "depth") > 3)
        assert len(picture(chromium, "speaking")) < 150_000  # goes into docs: make page-picture
        chromium.wait(lambda: chromium.text("status").startswith("Spoken: "))
        yield chromium
        chromium.driver.get("about:blank")


def seconds(browser, name: str) -> float:
    return float(browser.text(name).removesuffix(" s"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(spoken, scheme):
    spoken.look(scheme, 760, 900)
    ground = spoken.run("return getComputedStyle(document.body).backgroundColor")
    bright = sum(int(v) for v in ground.removeprefix("rgb(").removesuffix(")").split(",")) / 3
    assert bright > 200 if scheme == "light" else bright < 60
    contrasts = spoken.run(CONTRASTS)
    assert len(contrasts) > 15
    assert [c for c in contrasts if c[1] < 4.5] == []
    spoken.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    colours = spoken.run(
        "const c = document.getElementById('timeline'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "const seen = new Set(); for (let i = 0; i < d.length; i += 4) if (d[i + 3] === 255)"
        "  seen.add('#' + [d[i], d[i + 1], d[i + 2]].map((v) => v.toString(16).padStart(2, '0')).join('')); return [...seen]"
    )
    style = "return ['arrived', 'playing'].map((n) => getComputedStyle(document.body).getPropertyValue('--' + n))"
    assert set(spoken.run(style)) <= set(colours)
    picture(spoken, scheme)


@pytest.mark.parametrize("width", [320, 400, 1600])
def test_nothing_is_cut_off(spoken, width):
    spoken.look("light", width, 900)
    assert spoken.run("return document.documentElement.scrollWidth") <= width
    picture(spoken, f"width-{width}")
