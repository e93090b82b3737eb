"""The page under a person's hands: keys, words for what goes wrong, the API key."""

from __future__ import annotations

import httpx
import pytest

from ouzel.serve.desk import Desk
from ouzel.serve.page import PAGE
from serve_case import served, toy_voice
from test_serve_page import LONG, speak
from toys import Barrier, Failing, ToyFrontend, ToyTalker

TAB, ENTER, ESCAPE, CONTROL, SHIFT = "\ue004", "\ue007", "\ue00c", "\ue009", "\ue008"


@pytest.fixture(scope="module")
def server():
    with toy_voice() as voice, served(voice) as found:
        yield found
        found.wait_idle()


# ---- without a browser


@pytest.mark.parametrize("path", PAGE)
def test_its_files_are_open_and_strict(path):
    with toy_voice() as voice, served(voice, api_keys=("k",)) as server:
        answer = httpx.get(server.url + path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "://" not in answer.text.replace("http://www.w3.org/2000/svg", "")
        head = httpx.head(server.url + path)
        assert head.status_code == 200
        assert head.headers["content-length"] == str(len(answer.content))


@pytest.mark.parametrize("path", ["/page/", "/page/__init__.py", "/page/../app.py", "/page/%2e%2e/app.py", "/page/nothing"])
def test_no_other_file_is_there(server, path):
    assert httpx.get(server.url + path).status_code == 404


def test_what_the_model_can_is_told(embedded):
    with served(embedded) as server:
        (model,) = httpx.get(server.url + "/v1/audio/models").json()["models"]
    assert model == {"id": embedded.name, "task_type": "CustomVoice", "sample_rate": 24000, "speeds": [0.25, 4.0]}
    with toy_voice() as voice, served(voice) as server:
        assert httpx.get(server.url + "/v1/audio/models").json()["models"][0]["speeds"] == [1.0, 1.0]


# ---- keys of the keyboard


def test_by_keyboard_alone(browser, embedded):
    with served(embedded) as server:
        browser.open(server.url)
        stops = []
        for _ in range(5):
            browser.keys(TAB)
            stops.append(browser.focused)
        assert stops[:4] == ["text", "voice", "speed", "speak"]
        browser.keys(SHIFT, TAB)
        browser.element("speed").send_keys("\ue014")  # right
        assert browser.text("speed-shown") == "1.05×"
        browser.element("voice").send_keys("m")  # type ahead
        assert browser.run("return document.getElementById('voice').value") == "moss"
        browser.write("text", "One. Two. Three. Four. Five. Six. Seven. Eight. Nine. Ten.")
        browser.element("text").send_keys("")
        browser.keys(CONTROL, ENTER)
        browser.wait(lambda: browser.text("status") == "Speaking.")
        browser.wait(lambda: browser.loudest > 0.01)
        browser.keys(ESCAPE)
        server.wait_idle()
        assert browser.text("status").startswith("Stopped after ")
        assert browser.focused == "text"
        label = browser.run("return document.getElementById('timeline').getAttribute('aria-label')")
        assert label.startswith("First audio after ")


def test_stop_is_reached_and_gives_the_focus_back(browser):
    with toy_voice(ToyTalker(3000)) as voice, served(voice) as server:
        browser.open(server.url)
        browser.write("text", LONG)
        browser.run("document.getElementById('speak').focus()")
        browser.keys(ENTER)
        browser.wait(lambda: browser.loudest > 0.01)
        browser.keys(TAB)
        assert browser.focused == "stop"
        browser.keys(ENTER)
        server.wait_idle()
        assert browser.focused == "speak"


def test_everything_that_takes_the_focus_has_a_name(browser, server):
    browser.open(server.url)
    nodes = browser.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named = {}
    for node in nodes:
        properties = {p["name"]: p["value"].get("value") for p in node.get("properties", ())}
        if properties.get("focusable") and node["role"]["value"] not in ("RootWebArea", "option"):
            named[node["name"]["value"]] = node["role"]["value"]
    assert named == {"Text": "textbox", "Voice": "combobox", "Speak": "button"}
    live = [n for n in nodes if n["role"]["value"] in ("status", "alert")]
    assert {n["role"]["value"] for n in live} == {"status", "alert"}


# ---- what goes wrong


def test_an_error_is_a_sentence_and_goes_away(browser, server):
    browser.open(server.url)
    browser.write("text", "  ")
    browser.click("speak")
    browser.wait(lambda: browser.text("problem") == "Input text cannot be empty.")
    assert browser.text("status") == ""
    assert not browser.element("stop").is_enabled()
    speak(browser, "One.")
    assert browser.text("problem") == ""


def test_a_busy_server(browser):
    talker = ToyTalker(3000)
    with toy_voice(talker) as voice, served(voice, concurrency=1, queue=0) as server:
        browser.open(server.url)
        with httpx.stream("POST", server.url + "/v1/audio/speech", json={"input": LONG, "response_format": "pcm"}):
            browser.click("speak")
            browser.wait(lambda: "try again later" in browser.text("problem"))
        server.wait_idle()
        talker.frames = 3
        speak(browser, "One.")


def test_a_server_that_is_still_loading(browser):
    with served(None) as server, toy_voice() as voice:
        browser.open(server.url, until="")
        browser.wait(lambda: "still being loaded" in browser.text("problem"))
        server.call(lambda: Desk.open(server.desk, voice))
        browser.wait(lambda: browser.text("status") == "Ready.")  # it asks again by itself
        assert browser.text("problem") == ""


def test_a_server_that_has_gone(browser):
    with toy_voice() as voice, served(voice) as server:
        browser.open(server.url)
    browser.click("speak")
    browser.wait(lambda: browser.text("problem") == "The server does not answer; it may have been stopped.")


def test_an_error_in_the_middle(browser):
    """What has come is played, and the rest is missed in words."""
    barrier, failing = Barrier(at=20), Failing(at=20)
    with toy_voice(ToyTalker(30, on_step=lambda n: (barrier(), failing()))) as voice, served(voice) as server:
        browser.open(server.url)
        browser.write("text", "One two three.")
        browser.click("speak")
        browser.wait(lambda: browser.text("heard") != "–")
        barrier.go.set()
        browser.wait(lambda: browser.text("problem").startswith("The connection ended before the speech did"))
        browser.wait(lambda: browser.text("status").startswith("Spoken: "))
        assert browser.text("length") != "–"


def test_a_model_that_is_told_how_to_sound(browser):
    class Designer(ToyFrontend):
        task = "VoiceDesign"
        voices = ()

    frontend = Designer()
    with toy_voice() as voice:
        voice._frontend = frontend
        frontend.resolve = lambda request: frontend.requests.append(request) or request
        with served(voice) as server:
            browser.open(server.url)
            assert not browser.element("voice").is_displayed()
            browser.element("instructions").send_keys("low and slow")
            speak(browser, "One.")
    assert [request.instructions for request in frontend.requests][-1] == "low and slow"


def test_names_alone_are_voices_too(browser):
    with toy_voice() as voice, served(voice, compat="vllm-omni") as server:
        browser.open(server.url)
        assert browser.run("return [...document.getElementById('voice').options].map((o) => o.text)") == ["default", "toy"]
        speak(browser, "One two.")


# ---- the API key


def test_the_key(browser):
    with toy_voice() as voice, served(voice, api_keys=("right",)) as server:
        browser.driver.get(server.url)
        browser.wait(lambda: browser.element("key").is_displayed())
        assert browser.focused == "key"
        browser.element("key").send_keys("wrong" + ENTER)
        browser.wait(lambda: browser.text("key-problem") == "The server does not take this key.")
        browser.element("key").send_keys("right" + ENTER)
        browser.wait(lambda: browser.text("status") == "Ready.")
        speak(browser, "One.")
        kept = browser.run("return [Object.values(sessionStorage), localStorage.length, document.cookie]")
        assert kept == [["right"], 0, ""]
        browser.open(server.url)  # again, in the same tab
        browser.click("forget")
        assert browser.run("return sessionStorage.length") == 0
        browser.click("speak")
        browser.wait(lambda: browser.element("key").is_displayed())
        browser.keys(ESCAPE)
        browser.wait(lambda: browser.text("problem").startswith("Without its API key"))
