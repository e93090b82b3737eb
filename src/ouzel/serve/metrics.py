"""Counters and histograms in Prometheus' text format, with vLLM-Omni's names and definitions (contract 9.2)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from ouzel.engine import Live
from ouzel.engine.metrics import CONTINUOUS_S, UtteranceMetrics

PREFIX = "vllm_omni:"
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
RATIOS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1, 1.5, 2, 3, 5)

_HELP = {
    "requests_success_total": "Requests that got their audio, by how the speech ended.",
    "speech_stream_completed_total": "Streams that were delivered to the end.",
    "speech_stream_aborted_total": "Streams that were not, by reason.",
    "audio_skipped_requests_total": "Requests that made no audio.",
    "audio_frames_total": "Samples of audio that were made.",
    "audio_continuity_ok_total": "Streams whose worst underrun stayed below the threshold.",
    "requests_refused_total": "Requests that were turned away because the server was busy.",
    "e2e_request_latency_s": "From a request to the end of its response.",
    "audio_ttfp_s": "From a request to its first audio.",
    "audio_duration_s": "Audio of a request.",
    "audio_rtf": "Time to make a second of audio.",
    "audio_underrun_s": "Worst deficit of a player that starts at once.",
}
_STAGED = ("audio_ttfp_s", "audio_duration_s", "audio_rtf", "audio_frames_total", "audio_underrun_s", "audio_continuity_ok_total")
_STAGE = {"stage": "1", "replica": "0"}  # the decoder's, where the server counts audio


class _Histogram:
    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class ServeMetrics:
    """Fed from the event loop only."""

    def __init__(self) -> None:
        self._counters: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
        self._histograms = {
            name: _Histogram(RATIOS if name == "audio_rtf" else SECONDS) for name in _HELP if not name.endswith("_total")
        }

    def count(self, name: str, value: float = 1, **labels: str) -> None:
        series = self._counters.setdefault(name, {})
        key = tuple(sorted(labels.items()))
        series[key] = series.get(key, 0) + value

    def value(self, name: str, **labels: str) -> float:
        """Of a counter; 0 if it never counted."""
        return self._counters.get(name, {}).get(tuple(sorted(labels.items())), 0)

    def finished(self, metrics: UtteranceMetrics, wall_s: float, *, aborted: str | None, streamed: bool) -> None:
        """One utterance is over. aborted: None, or why its client did not get all of it."""
        if metrics.samples:
            self.count("audio_frames_total", metrics.samples)
        if aborted is not None:
            self.count("speech_stream_aborted_total", reason=aborted)
            if not metrics.samples and aborted == "error":
                self.count("audio_skipped_requests_total", reason="no_audio_data")
            return
        self.count("requests_success_total", finished_reason=metrics.finish_reason)
        self._histograms["e2e_request_latency_s"].observe(wall_s)
        self._histograms["audio_duration_s"].observe(metrics.audio_s)
        self._histograms["audio_rtf"].observe(metrics.rtf)
        if streamed:
            self.count("speech_stream_completed_total")
            self._histograms["audio_ttfp_s"].observe(metrics.ttfa_s or 0.0)
            self._histograms["audio_underrun_s"].observe(metrics.underrun_s)
            if metrics.continuous:
                self.count("audio_continuity_ok_total", threshold_ms=f"{CONTINUOUS_S * 1000:g}")

    def render(self, model: str, live: Live) -> str:
        """The text exposition format, version 0.0.4."""
        return "".join(f"{line}\n" for line in self._lines(model, live))

    def _lines(self, model: str, live: Live) -> Iterator[str]:
        common = {"model_name": model}
        for name, value, text in (
            ("num_requests_running", live.active, "Utterances that are being spoken."),
            ("num_requests_waiting", live.waiting, "Utterances that wait for their turn."),
        ):
            yield f"# HELP {PREFIX}{name} {text}"
            yield f"# TYPE {PREFIX}{name} gauge"
            yield f"{PREFIX}{name}{_labels(common)} {value}"
        for name, text in _HELP.items():
            base = common | (_STAGE if name in _STAGED else {})
            yield f"# HELP {PREFIX}{name} {text}"
            if name in self._histograms:
                yield f"# TYPE {PREFIX}{name} histogram"
                yield from _histogram(PREFIX + name, self._histograms[name], base)
                continue
            yield f"# TYPE {PREFIX}{name} counter"
            for key, count in self._counters.get(name, {}).items():
                yield f"{PREFIX}{name}{_labels(base | dict(key))} {count:g}"


def _histogram(name: str, found: _Histogram, labels: Mapping[str, str]) -> Iterator[str]:
    below = 0
    for bound, count in zip((*map(str, found.bounds), "+Inf"), found.counts, strict=True):
        below += count
        yield f"{name}_bucket{_labels({**labels, 'le': bound})} {below}"
    yield f"{name}_sum{_labels(labels)} {found.total:g}"
    yield f"{name}_count{_labels(labels)} {below}"


def _labels(values: Mapping[str, str]) -> str:
    def quoted(value: str) -> str:
        return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    return "{" + ",".join(f'{name}="{quoted(value)}"' for name, value in values.items()) + "}"
