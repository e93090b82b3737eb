"""Running a probe: its lines as they come, and no process left behind whatever happens here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from ouzel.errors import SynthesisError


def lines(*arguments: str, python: str = sys.executable) -> Iterator[dict[str, Any]]:
    """The JSON objects that `ouzel.tuning.probe` prints; SynthesisError when it says that something is wrong, or dies.

    python: the interpreter. The child ends with this generator, at the latest; its standard input stays open until then.
    """
    command = [python, "-m", "ouzel.tuning.probe", *arguments]
    # OpenMP must not spin beside what is measured.
    env = {"OMP_WAIT_POLICY": "passive", **os.environ}
    with tempfile.TemporaryFile("w+", errors="replace") as complaints:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints, text=True, env=env
            )
        except OSError as error:
            raise SynthesisError(f"{python} cannot be started ({error.strerror or error}).") from None
        with process:
            try:
                for line in process.stdout or ():
                    found = _parsed(line)
                    if "error" in found:
                        raise SynthesisError(str(found["error"]))
                    if found:
                        yield found
                code = process.wait()
            finally:
                process.kill()
        if code:
            complaints.seek(0)
            last = complaints.read().strip().splitlines()[-1:]
            raise SynthesisError(f"The process that measured ended with code {code}{': ' + last[0].rstrip('.') if last else ''}.")


def _parsed(line: str) -> dict[str, Any]:
    """{} for what a library prints of its own accord."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
