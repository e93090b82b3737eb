"""The comparison of rounded weights with exact ones: what must agree does, and what is rounded more agrees less."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ar_case
from ouzel.bench.agreement import main
from ouzel.conversion import convert


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("agreement")
    ar_case.nano_checkpoint(out / "checkpoint")
    convert(out / "checkpoint", out / "bundle", weights="fp32")
    for weights in ("fp32", "q8_0", "q4_0"):
        convert(out / "checkpoint", out / "bundle", runtime="llama_cpp", weights=weights, add=True)
    return out / "bundle"


def rows(text: str) -> dict[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = {}
    stage = ""
    for line in text.splitlines():
        if not line.startswith(" "):
            stage = line.split("  ")[0]
        else:
            _, weights, *values = line.split()
            found[stage, weights] = [float(v) for v in values]
    return found


def test_fewer_bits_agree_less(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(bundle), "--frames", "12"]) == 0
    found = rows(capsys.readouterr().out)
    assert found["talker", "fp32"] == [100.0, 100.0, 0.0]
    assert found["code predictor", "fp32"] == [100.0, 100.0]
    divergence = [found["talker", weights][2] for weights in ("fp32", "q8_0", "q4_0")]
    assert divergence == sorted(divergence)
    assert divergence[2] > 10 * divergence[1] > 0
    for weights in ("q8_0", "q4_0"):
        top1, top5, _ = found["talker", weights]
        assert 0 < top1 <= top5 <= 100
    agreed = [found["code predictor", weights][0] for weights in ("q4_0", "q8_0")]
    assert np.all(np.diff(agreed) > 0)


def test_a_bundle_without_exact_weights_is_refused(
    nano_checkpoint: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = convert(nano_checkpoint("custom_voice"), tmp_path / "small", runtime="llama_cpp", weights="q8_0")
    assert main([str(out)]) == 2
    assert "has no talker in fp32 to compare with; add one: ouzel convert CHECKPOINT" in capsys.readouterr().err
