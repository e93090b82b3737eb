"""The examples of docs/text.md run, and its figures are those of the golden file."""

import doctest
import json
import re
from pathlib import Path

from ouzel.text import MAX_TEXT_CHARS, SOFT_LIMIT

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs" / "text.md"


def test_examples_run():
    # The closing fence is no part of an example's output: each example ends with a blank line.
    result = doctest.testfile(str(DOCS), module_relative=False, encoding="utf-8")
    assert result.attempted >= 12
    assert result.failed == 0


def test_figures_are_current():
    text = DOCS.read_text(encoding="utf-8")
    golden = json.loads((ROOT / "tests" / "golden" / "text_split.json").read_text(encoding="utf-8"))
    same, different = re.search(r"holds (\d+) texts .* and (\d+) where", text, re.DOTALL).groups()
    assert (int(same), int(different)) == (len(golden["same"]), len(golden["different"]))
    assert f"{MAX_TEXT_CHARS:,}" in text
    assert f"{SOFT_LIMIT:,} characters" in text
