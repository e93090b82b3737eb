"""Recordings from elsewhere: which addresses are called, how much and how long, and what is told of failures."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ouzel.errors import UsageError
from ouzel.serve.public_address import is_public
from ouzel.serve.remote import Remote, Target
from recording_site import BODY, Names, Site


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    found = Site()
    yield found
    found.end()


def fetch(url: str, *private: str, most: int = 1 << 20, wait: float = 20, resolve: Names | None = None) -> bytes:
    async def ask() -> bytes:
        return await Remote(private, max_bytes=most, timeout_s=wait, resolve=resolve).fetch(url)

    return asyncio.run(ask())


def refusal(url: str, *private: str, **options) -> str:
    with pytest.raises(UsageError) as caught:
        fetch(url, *private, **options)
    message = str(caught.value)
    assert caught.value.param == "ref_audio"
    assert message.startswith("ref_audio: ")
    assert message.endswith(".")
    return message


# ---- addresses


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "0.0.0.0", "0.1.2.3", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "198.18.0.1", "203.0.113.9",
        "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "::127.0.0.1", "::7f00:1", "64:ff9b::7f00:1",
        "64:ff9b::10.0.0.1", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1", "2001::1", "2001:db8::1", "fe80::1",
        "fe80::1%eth0", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1", "ff0e::1", "100::1", "4000::1", "",
        "localhost", "1.2.3", "0177.0.0.1",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public(address):
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "172.32.0.1", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1", "2606:4700:4700::1111"]
)
def test_addresses_that_are(address):
    assert is_public(address)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001", "127.0.0.1.", "0",
        "0.0.0.0", "localhost", "LOCALHOST", "localhost.", "[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]", "[::]",
    ],
)  # fmt: skip
def test_no_spelling_of_this_machine_is_called(site, host):
    before = len(site.seen)
    message = refusal(f"http://{host}:{site.port}/ok")
    assert "no public address" in message or "is not known" in message  # some resolvers know some spellings
    assert len(site.seen) == before


@pytest.mark.parametrize("host", ["169.254.169.254", "10.0.0.1", "192.168.1.1", "[fd00:ec2::254]", "[fe80::1]", "224.0.0.1"])
def test_nothing_else_that_is_near_is_called(host):
    began = time.monotonic()
    assert "no public address; --private-audio-host" in refusal(f"http://{host}/latest/meta-data/")
    assert time.monotonic() - began < 5  # nobody was waited for


def test_a_name_with_a_private_address(site):
    for answer in (["127.0.0.1"], ["10.0.0.1", "::1"], ["::ffff:127.0.0.1"], []):
        assert "no public address" in refusal(f"http://voices.example:{site.port}/ok", resolve=Names(answer))
    assert not site.seen or all(headers["host"] != f"voices.example:{site.port}" for _, headers in site.seen)


def test_a_name_is_looked_up_once_and_that_is_called(site):
    """DNS rebinding: the second answer would be another machine."""
    names = Names(["127.0.0.1"], ["192.0.2.1"])
    assert fetch(f"http://voices.example:{site.port}/ok", "voices.example", resolve=names) == BODY
    assert names.asked == [("voices.example", site.port)]
    assert site.seen[-1][1]["host"] == f"voices.example:{site.port}"


def test_the_addresses_of_a_name_are_tried_in_turn(site):
    names = Names(["::1", "127.0.0.1"])  # nobody listens on the first
    assert fetch(f"http://voices.example:{site.port}/ok", "voices.example", resolve=names) == BODY


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_each_hop_is_checked_again(site, status):
    """From a host that is let in to the same machine under a name that is not."""
    names = Names(["127.0.0.1"])
    here = f"http://voices.example:{site.port}"
    assert fetch(f"{here}/to?status={status}&url=/ok", "voices.example", resolve=names) == BODY
    before = len(site.seen)
    for target in (f"http://127.0.0.1:{site.port}/ok", f"//other.example:{site.port}/ok", "http://169.254.169.254/"):
        assert "no public address" in refusal(f"{here}/to?status={status}&url={target}", "voices.example", resolve=names)
    for target in ("file:///etc/passwd", "ftp://127.0.0.1/", "data:audio/wav;base64,AAAA"):
        assert "only http and https" in refusal(f"{here}/to?status={status}&url={target}", "voices.example", resolve=names)
    assert len(site.seen) == before + 6


def test_a_name_that_changes_between_hops(site):
    """The first lookup is let through by its public answer, the second is not: nothing is remembered of the first."""
    names = Names(["127.0.0.1"], ["10.0.0.1"])
    here = f"http://voices.example:{site.port}"
    other = f"http://second.example:{site.port}/ok"
    assert "no public address" in refusal(f"{here}/to?url={other}", "voices.example", resolve=names)
    assert [host for host, _ in names.asked] == ["voices.example", "second.example"]


@pytest.mark.parametrize("private", ["127.0.0.1", "127.0.0.1:{}"])
def test_a_private_host_may_be_let_in(site, private):
    assert fetch(site.url + "/ok", private.format(site.port)) == BODY


@pytest.mark.parametrize("private", ["127.0.0.1:1", "localhost", "127.0.0.2"])
def test_only_that_one(site, private):
    assert "no public address" in refusal(site.url + "/ok", private)


# ---- what an address may be


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://host/x", "only http and https"),
        ("http:///x", "no host"),
        ("http://", "no host"),
        ("http://user:secret@host/x", "user name or password"),
        ("http://host@127.0.0.1/x", "user name or password"),
        ("http://host:99999/", "malformed"),
        ("http://host:x/", "malformed"),
        ("http://[::1/", "malformed"),
        ("http://[::1%25eth0]/", "no host"),
        ("http://[v1.x]/", ""),
        ("http://host:22/", "port 22"),
        ("http://host:25/", "port 25"),
        ("http://host:0/", "port 0"),
        ("http://ho st/", "characters"),
        ("http://host/\r\nx: y", "characters"),
        ("http://host\t/", "characters"),
        ("http://host\\@other/", "characters"),
        ("http://ho%73t/", "no host"),
        ("http://-host/", "no host"),
        ("http://" + "h" * 300 + "/", "no host"),
        ("http://ho*st/", "no host"),
        ("http://。/", "no host"),
        ("http://host/" + "x" * 9000, "8,192 characters"),
    ],
)  # fmt: skip
def test_malformed_addresses(url, words):
    assert words in refusal(url, resolve=Names([]))


def test_what_is_sent(site):
    fetch(f"{site.url}/ok?name=größe&x=%20#fragment", "127.0.0.1")
    path, headers = site.seen[-1]
    assert path == "/ok?name=gr%C3%B6%C3%9Fe&x=%20"
    assert set(headers) == {"host", "user-agent", "accept", "accept-encoding", "connection"}
    assert Target.parse("http://bücher.example/").host == "xn--bcher-kva.example"
    assert Target.parse("HTTP://HOST:80").authority == "host"
    assert Target.parse("https://[2606:4700::1]:8443/a").names == ("[2606:4700::1]", "[2606:4700::1]:8443")


def test_a_host_that_nobody_knows():
    assert "is not known" in refusal("http://no-such-host.invalid/x.wav")


# ---- how much, how long, and what is wrong with an answer


@pytest.mark.parametrize("path", ["/ok", "/chunked", "/until_close"])
def test_ways_to_send_a_body(site, path):
    assert fetch(site.url + path, "127.0.0.1") == BODY
    assert "more than 9,999 bytes" in refusal(site.url + path, "127.0.0.1", most=9_999)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/missing", "answered 404"),
        ("/nowhere", "answered 302"),
        ("/partial", "answered 206"),
        ("/loop", "more than 3 times"),
        ("/announced", "more than 1,048,576 bytes"),
        ("/endless", "more than 1,048,576 bytes"),
        ("/short", "whole HTTP answer"),
        ("/nonsense", "whole HTTP answer"),
        ("/headers", "whole HTTP answer"),
    ],
)
def test_answers_that_are_no_recording(site, path, words):
    assert words in refusal(site.url + path, "127.0.0.1")


def test_an_answer_that_drips(site):
    began = time.monotonic()
    assert "within 0.3 s" in refusal(site.url + "/slow", "127.0.0.1", wait=0.3)
    assert time.monotonic() - began < 10


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert refusal(f"http://127.0.0.1:{port}/", "127.0.0.1").endswith("could not be reached: Connection refused.")


def test_cancelling_closes_the_connection():
    """Somebody accepts and says nothing; then the client of the server leaves."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(30)

        async def ask() -> None:
            remote = Remote(["127.0.0.1"], max_bytes=1000, timeout_s=60)
            task = asyncio.create_task(remote.fetch(f"http://127.0.0.1:{silent.getsockname()[1]}/"))
            connection, _ = await asyncio.to_thread(silent.accept)
            with connection:
                assert await asyncio.to_thread(connection.recv, 100)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                connection.settimeout(30)

                def ended() -> bool:
                    try:
                        while connection.recv(1000):
                            pass
                    except ConnectionResetError:
                        pass
                    return True

                assert await asyncio.to_thread(ended)
            assert task.cancelled()

        asyncio.run(ask())


# ---- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> Path:
    """Of voices.example, with its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a certificate")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=voices.example", "-addext", "subjectAltName=DNS:voices.example", "-keyout", path, "-out", f"{path}.crt"],
        check=True, capture_output=True,
    )  # fmt: skip
    path.write_bytes(path.read_bytes() + Path(f"{path}.crt").read_bytes())
    return path


def test_certificates_are_checked_against_the_name(certificate, monkeypatch):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    secure = Site(context)
    names = Names(["127.0.0.1"])
    try:
        url = f"https://voices.example:{secure.port}/ok"
        assert "self-signed certificate" in refusal(url, "voices.example", resolve=names)
        monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
        assert fetch(url, "voices.example", resolve=names) == BODY
        other = url.replace("voices", "other")
        assert "ostname mismatch" in refusal(other, "other.example", resolve=names)
        plain = f"https://127.0.0.1:{secure.port}/ok"
        assert "could not be reached" in refusal(plain, "127.0.0.1")
    finally:
        secure.end()
