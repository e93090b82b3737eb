"""The runtime executorch where its package is not installed: known, not available, and what to install is said."""

from __future__ import annotations

import importlib.util

import pytest

from ouzel.conversion import convert
from ouzel.errors import MissingExtraError
from ouzel.runtimes.registry import get_runtime, runtimes

pytestmark = pytest.mark.skipif(importlib.util.find_spec("executorch") is not None, reason="the package is installed")


def test_it_is_known_and_says_what_to_install():
    assert "executorch" in runtimes()
    status = get_runtime("executorch").status()
    assert not status.available
    assert status.detail == "ExecuTorch is not installed; install it with: pip install 'ouzel[executorch]'."


def test_converting_for_it_says_so_and_leaves_nothing(nano_checkpoint, tmp_path):
    with pytest.raises(MissingExtraError, match=r"pip install 'ouzel\[executorch\]'"):
        convert(nano_checkpoint("custom_voice"), tmp_path / "out", runtime="executorch")
    assert list(tmp_path.iterdir()) == []
