"""Running the real command line in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

# A test run in the background of a shell ignores SIGINT, and children inherit that.
_INTERRUPTIBLE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from ouzel.cli.main import main
sys.exit(main())
"""


def environment(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OUZEL_", "HF_", "XDG_"))}
    return {**kept, "OUZEL_HOME": str(home), "OMP_NUM_THREADS": "1", **(extra or {})}


def ouzel(
    *arguments: str | Path,
    home: Path,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "ouzel", *map(str, arguments)]
    return subprocess.run(
        command, input=stdin, capture_output=True, timeout=300, check=False, env=environment(home, env), cwd=cwd or home
    )


def start(*arguments: str | Path, home: Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTIBLE, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home, env),
        cwd=home,
    )


def error_of(done: subprocess.CompletedProcess[bytes], code: int = 2) -> str:
    """The one sentence on stderr of a command that must have failed with `code` and nothing on stdout."""
    text = done.stderr.decode()
    assert done.returncode == code, text
    assert "Traceback" not in text
    assert done.stdout == b""
    lines = text.splitlines()
    assert lines[-1].startswith("ouzel: error: ")
    return lines[-1].removeprefix("ouzel: error: ")


def made(home: Path) -> list[str]:
    """What lies in the home folder beside what belongs there."""
    return sorted(p.name for p in home.iterdir() if p.name not in ("models", "cache"))


def until_ready(process: subprocess.Popen) -> list[str]:
    """The lines on stderr of a server that starts, the one that says it is ready last."""
    lines: list[str] = []
    while not (lines and "ready after" in lines[-1]):
        line = process.stderr.readline()
        lines.append(line if isinstance(line, str) else line.decode())
        assert lines[-1], f"it ended: {''.join(lines)}"
    return lines


def address_in(lines: list[str]) -> str:
    return next(re.search(r"listening on (http://[^\s\"]+)", line)[1] for line in lines if "listening on http" in line)
