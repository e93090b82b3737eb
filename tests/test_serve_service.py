"""What service/ has for running the server: a systemd unit, a Dockerfile, and what the command does for both."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx

from cli_run import address_in, error_of, ouzel, start, until_ready
from serve_case import served, toy_voice

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "service" / "ouzel.service"
DOCKERFILE = (ROOT / "service" / "Dockerfile").read_text(encoding="utf-8")


# ---- systemd


def test_the_unit_is_one(tmp_path):
    """By systemd itself where it is; the command that the unit starts is not installed here."""
    text = UNIT.read_text(encoding="utf-8")
    command = re.search(r"^ExecStart=(\S+) (.*)$", text, re.MULTILINE)
    assert command[2] == "serve --config /etc/ouzel/serve.yaml"
    parsed = configparser.RawConfigParser(strict=False)
    parsed.optionxform = str
    parsed.read_string(text)
    assert parsed.sections() == ["Unit", "Service", "Install"]
    assert parsed["Service"]["Type"] == "notify"
    for name in ("DynamicUser", "NoNewPrivileges"):
        assert parsed["Service"][name] == "yes"
    assert parsed["Service"]["ProtectSystem"] == "strict"
    drain = int(re.search(r"^drain_seconds: (\d+)", (UNIT.parent / "serve.yaml").read_text(), re.MULTILINE)[1])
    assert int(parsed["Service"]["TimeoutStopSec"]) > drain
    if shutil.which("systemd-analyze"):
        here = tmp_path / UNIT.name
        here.write_text(text.replace(command[1], sys.executable), encoding="utf-8")
        done = subprocess.run(["systemd-analyze", "verify", here], capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_the_manager_is_told(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        env = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        process = start("serve", "-m", "embedded", "--port", "0", "--threads", "1", home=tmp_path, env=env)
        assert manager.recv(100) == b"READY=1"
        url = address_in(until_ready(process))
        assert httpx.get(url + "/ready").status_code == 200
        os.kill(process.pid, signal.SIGTERM)
        assert manager.recv(100) == b"STOPPING=1"
        process.communicate(timeout=60)
        assert process.returncode == 0


def test_a_wrong_setting_ends_it_with_the_code_that_is_not_tried_again(tmp_path):
    (tmp_path / "serve.yaml").write_text("prot: 1")
    assert "Did you mean 'port'?" in error_of(ouzel("serve", "--config", "serve.yaml", home=tmp_path), 2)
    assert "RestartPreventExitStatus=2\n" in UNIT.read_text()


# ---- Docker


def test_the_dockerfile_fits_the_repository():
    """The image itself cannot be built where there is no Docker."""
    lines = [line for line in DOCKERFILE.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    known = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "ENV", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT"}
    assert {line.split()[0] for line in lines} == known
    for line in lines:
        if line.startswith("COPY") and "--from" not in line:
            for name in line.split()[1:-1]:
                assert (ROOT / name).exists(), name
    assert lines.index("USER ouzel") < next(i for i, line in enumerate(lines) if line.startswith("ENTRYPOINT"))
    assert ".[serve]" in DOCKERFILE
    assert (ROOT / "pyproject.toml").read_text().count('readme = "README.md"') == 1  # which is why it is copied


def test_the_health_check_knows_ready_from_loading():
    command = json.loads(re.search(r"^HEALTHCHECK[^\[]*(\[.*\])$", DOCKERFILE.replace("\\\n", " "), re.MULTILINE)[1])
    assert command[0] == "python"

    def check(url: str) -> int:
        code = command[2].replace("http://127.0.0.1:8000", url)
        assert code != command[2]
        return subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False).returncode

    with served(None) as server:
        assert check(server.url) != 0
    with toy_voice() as voice, served(voice) as server:
        assert check(server.url) == 0


def test_the_entry_point_asks_for_a_key(tmp_path):
    arguments = json.loads(re.search(r"^ENTRYPOINT (\[.*\])$", DOCKERFILE, re.MULTILINE)[1])
    assert arguments[0] == "ouzel"
    assert "--api-key" in error_of(ouzel(*arguments[1:], home=tmp_path), 2)


# ---- the log


def test_the_log_as_json(tmp_path):
    (tmp_path / "serve.yaml").write_text("model: embedded\nport: 0\nthreads: 1\nlog_format: json\napi_key_file: keys\n")
    (tmp_path / "keys").write_text("the-key\n")
    (tmp_path / "keys").chmod(0o600)
    process = start("serve", "--config", "serve.yaml", home=tmp_path)
    lines = until_ready(process)
    url = address_in(lines) + "/v1/audio/speech"
    body = {"input": "Some secret words.", "response_format": "pcm"}
    assert httpx.post(url, json=body, timeout=60).status_code == 401
    key = {"authorization": "Bearer the-key"}
    assert httpx.post(url, json=body, headers=key | {"x-request-id": "mine"}, timeout=60).status_code == 200
    assert httpx.post(url, json=body | {"voice": "nobody"}, headers=key, timeout=60).status_code == 400
    os.kill(process.pid, signal.SIGTERM)
    lines += process.communicate(timeout=60)[1].decode().splitlines()
    records = [json.loads(line) for line in lines]
    assert all({"time", "level", "message"} <= set(record) for record in records)
    spoken, refused = [record for record in records if record["message"] == "request"]
    assert (spoken["id"], spoken["outcome"], spoken["finish"], spoken["voice"]) == ("mine", "ok", "stop", "fern")
    for name in ("ttfa_ms", "wall_ms", "audio_s", "rtf", "underrun_ms", "seed", "chars"):
        assert isinstance(spoken[name], int | float), name
    assert refused["outcome"] == "error:400"
    assert "secret" not in "".join(lines)
