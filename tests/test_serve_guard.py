"""Who may call, and how much they may send."""

from __future__ import annotations

import asyncio
import socket

import httpx
import pytest

from ouzel.errors import ConfigError
from ouzel.serve.app import create_app
from ouzel.serve.desk import Desk
from ouzel.serve.settings import ServeSettings
from serve_case import served, toy_voice
from test_serve_speech import error_of

PATH = "/v1/audio/speech"


@pytest.fixture(scope="module")
def locked():
    with toy_voice() as voice, served(voice, api_keys=("first", "second")) as found:
        yield found


@pytest.mark.parametrize("key", ["first", "second"])
def test_a_key_opens(locked, key):
    assert locked.post({"input": "one"}, headers={"authorization": f"Bearer {key}"}).status_code == 200


@pytest.mark.parametrize("header", [None, "Bearer", "Bearer third", "Basic first", "first", "Bearer firs", "Bearer é"])
@pytest.mark.parametrize("path", ["/v1/models", "/v1/audio/voices", "/metrics", "/openapi.json"])
def test_without_a_key_nothing_opens(locked, header, path):
    headers = {} if header is None else {"authorization": header.encode()}
    answer = httpx.get(locked.url + path, headers=headers)
    error_of(answer, 401)
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_health_needs_no_key(locked, path):
    assert httpx.get(locked.url + path).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "some-name"])
def test_beyond_loopback_needs_a_key_or_a_word(host):
    with pytest.raises(ConfigError, match="--api-key"):
        ServeSettings(host=host)
    assert ServeSettings(host=host, api_keys=("k",)).loopback is False
    assert ServeSettings(host=host, allow_unauthenticated=True).loopback is False


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_needs_none(host):
    assert ServeSettings(host=host).loopback


@pytest.mark.parametrize(
    "wrong",
    [{"compat": "other"}, {"port": 70_000}, {"concurrency": 0}, {"queue": -1}, {"write_stall_s": 0}, {"api_keys": ("",)}],
    ids=str,
)
def test_settings_that_make_no_sense(wrong):
    with pytest.raises(ConfigError):
        ServeSettings(**wrong)


def test_a_page_under_a_name_of_its_own_is_kept_out():
    """DNS rebinding: the browser connects to 127.0.0.1 and says so with the page's name."""
    with toy_voice() as voice, served(voice, allowed_hosts=("speaker.lan",)) as server:
        for host, status in (("evil.example", 403), ("speaker.lan:8000", 200), ("localhost:1", 200), ("[::1]:8000", 200)):
            assert httpx.get(server.url + "/v1/models", headers={"host": host}).status_code == status


def test_cross_origin_is_off_by_default():
    with toy_voice() as voice, served(voice) as server:
        asked = {"origin": "https://page.example", "access-control-request-method": "POST"}
        answer = httpx.options(server.url + PATH, headers=asked)
        assert "access-control-allow-origin" not in answer.headers
        answer = server.post({"input": "one"}, headers={"origin": "https://page.example"})
        assert "access-control-allow-origin" not in answer.headers


def test_cross_origin_for_whom_it_is_on():
    with toy_voice() as voice, served(voice, cors_origins=("https://page.example",), api_keys=("k",)) as server:
        asked = {"origin": "https://page.example", "access-control-request-method": "POST"}
        assert httpx.options(server.url + PATH, headers=asked).headers["access-control-allow-origin"] == "https://page.example"
        other = {"origin": "https://other.example", "access-control-request-method": "POST"}
        assert "access-control-allow-origin" not in httpx.options(server.url + PATH, headers=other).headers


def test_a_body_that_is_too_large():
    with toy_voice() as voice, served(voice, max_body_bytes=1000) as server:
        error_of(server.post({"input": "x" * 2000}), 413)

        def pieces():
            for _ in range(100):
                yield b"x" * 100

        answer = httpx.post(server.url + PATH, content=pieces(), headers={"content-type": "application/json"})
        error_of(answer, 413)
        assert server.post({"input": "one"}).status_code == 200


def test_a_body_that_does_not_come():
    with toy_voice() as voice, served(voice, body_timeout_s=0.2) as server:
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(f"POST {PATH} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 10\r\n\r\n{{".encode())
            assert client.recv(1000).startswith(b"HTTP/1.1 408 ")
            client.settimeout(30)
            while client.recv(1000):
                pass
        assert server.desk.idle


def test_texts_stay_out_of_the_log(caplog):
    caplog.set_level("DEBUG", logger="ouzel")
    with toy_voice() as voice:
        with served(voice) as server:
            server.post({"input": "classified matter 😀"})
            server.post({"input": "classified", "voice": "nobody"})
        assert "outcome=ok" in caplog.text
        assert "classified" not in caplog.text
        with served(voice, log_text=True) as server:
            server.post({"input": "classified"})
        assert "text='classified'" in caplog.text


def test_the_document_of_the_interface_is_there_and_its_pages_are_not():
    app = create_app(Desk(ServeSettings()))

    async def ask(path: str) -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            return await client.get(path)

    assert "/v1/audio/speech" in asyncio.run(ask("/openapi.json")).json()["paths"]
    for path in ("/docs", "/redoc"):
        assert asyncio.run(ask(path)).status_code == 404
