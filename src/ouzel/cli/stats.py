"""The figures of an utterance on stderr."""

from __future__ import annotations

import json
import sys

from ouzel.cli.table import table
from ouzel.engine import Utterance
from ouzel.engine.metrics import UtteranceMetrics


def print_stats(utterance: Utterance, model: str, *, as_json: bool) -> None:
    """As a table, or as one line of JSON with every figure (`UtteranceMetrics`)."""
    metrics = utterance.metrics
    if as_json:
        print(json.dumps({"model": model, "seed": utterance.seed, **metrics.as_dict()}), file=sys.stderr)
        return
    rows = [("model", model), ("seed", str(utterance.seed)), *_rows(metrics)]
    print(table(rows), file=sys.stderr)


def _rows(metrics: UtteranceMetrics) -> list[tuple[str, str]]:
    chunks = ", ".join(map(str, metrics.chunk_frames))
    late = "none" if metrics.underrun_events == 0 else f"{metrics.underrun_events}, {_ms(metrics.underrun_s)} in all"
    return [
        ("finish reason", metrics.finish_reason),
        ("audio", f"{metrics.audio_s:.2f} s, {metrics.frames} frames"),
        ("time", f"{metrics.wall_s:.2f} s"),
        ("real-time factor", f"{metrics.rtf:.2f}"),
        ("first frame after", _ms(metrics.first_frame_s)),
        ("first audio after", _ms(metrics.ttfa_s)),
        ("first sound after", _ms(metrics.audible_onset_s)),
        ("gap-free playback after", _ms(metrics.uninterrupted_s)),
        ("late chunks", late),
        ("chunks, in frames", chunks),
    ]


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.0f} ms"
