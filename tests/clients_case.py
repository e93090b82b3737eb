"""What the pages about clients show, run as it stands against a server of the test."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"


def page(name: str, url: str) -> dict[str, Any]:
    """The names that the Python snippet of docs/<name>.md defines, with the server at `url`."""
    (snippet,) = re.findall(r"^```python\n(.*?)^```", (DOCS / name).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert snippet.count("http://127.0.0.1:8000") == 1
    scope: dict[str, Any] = {"__name__": "snippet"}
    exec(compile(snippet.replace("http://127.0.0.1:8000", url), name, "exec"), scope)
    return scope
