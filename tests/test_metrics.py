"""The figures of an utterance, against timelines worked out by hand."""

import json

import numpy as np
import pytest

from ouzel.audio.pcm import AudioChunk
from ouzel.engine.metrics import MetricsRecorder, UtteranceMetrics

RATE = 24_000
FRAME = 1920


def chunk(frames: int, index: int = 0, level: float = 0.1) -> AudioChunk:
    return AudioChunk(np.full(frames * FRAME, level, np.float32), RATE, index, False, frames)


def recorded(arrivals: list[tuple[float, int]], reason: str = "stop") -> UtteranceMetrics:
    recorder = MetricsRecorder(clock=lambda: 10.0)
    for index, (at, frames) in enumerate(arrivals):
        recorder.chunk(chunk(frames, index), at=10.0 + at)
    recorder.finish(reason, at=10.0 + arrivals[-1][0] + 0.5)
    return recorder.snapshot()


def test_the_stock_schedule_on_a_machine_of_rtf_one_quarter():
    """1 frame after 0.1 s, then 25 every 0.5 s, 4 at the end: the hole behind the first chunk is seen although RTF is fine."""
    metrics = recorded([(0.1, 1), (0.6, 25), (1.1, 25), (1.2, 4)])
    assert metrics.ttfa_s == pytest.approx(0.1)
    assert metrics.underrun_s == pytest.approx(0.42)
    assert metrics.underrun_events == 1
    assert not metrics.continuous
    assert metrics.uninterrupted_s == pytest.approx(0.52)
    assert metrics.audio_s == pytest.approx(4.4)
    assert metrics.rtf == pytest.approx(1.2 / 4.4)
    assert metrics.rtf_streamed == pytest.approx(1.1 / 4.08)
    assert metrics.tail_s == pytest.approx(0.1)
    assert metrics.gap_p95_s == metrics.gap_max_s == pytest.approx(0.5)
    assert (metrics.frames, metrics.samples, metrics.chunk_frames) == (55, 55 * FRAME, (1, 25, 25, 4))
    assert (metrics.wall_s, metrics.finish_reason) == (pytest.approx(1.7), "stop")


def test_a_continuous_stream():
    metrics = recorded([(0.2, 4), (0.4, 8), (0.8, 16)])
    assert metrics.underrun_s == 0
    assert metrics.underrun_events == 0
    assert metrics.continuous
    assert metrics.uninterrupted_s == metrics.ttfa_s


@pytest.mark.parametrize(("second", "continuous"), [(0.17, True), (0.19, False)])
def test_an_underrun_of_a_tenth_of_a_second_still_counts_as_continuous(second, continuous):
    assert recorded([(0.0, 1), (second, 25)]).continuous is continuous


def test_gap_p95_is_the_nearest_rank():
    arrivals = [(0.1 * i, 2) for i in range(20)] + [(1.9 + 0.9, 2)]
    metrics = recorded(arrivals)  # 20 gaps: 19 of 0.1 s and one of 0.9 s
    assert metrics.gap_p95_s == pytest.approx(0.1)
    assert metrics.gap_max_s == pytest.approx(0.9)


def test_paused_time_is_not_slowness():
    recorder = MetricsRecorder(clock=lambda: 0.0)
    recorder.chunk(chunk(10), at=0.5)
    recorder.chunk(chunk(10), at=0.9)
    recorder.paused(5.0)
    recorder.chunk(chunk(10), at=6.3)
    recorder.finish("stop", at=6.3)
    metrics = recorder.snapshot()
    assert metrics.gap_max_s == pytest.approx(0.4)
    assert metrics.rtf == pytest.approx(1.3 / 2.4)
    assert metrics.underrun_s == 0
    assert (metrics.paused_s, metrics.wall_s) == (5.0, 6.3)


def test_a_chunk_decoded_during_the_pause_does_not_turn_time_round():
    recorder = MetricsRecorder(clock=lambda: 0.0)
    recorder.chunk(chunk(10), at=1.0)
    recorder.chunk(chunk(10), at=3.0)  # the decoder was still busy when the talker was stopped at 1.5
    recorder.paused(4.5)
    recorder.chunk(chunk(10), at=6.2)
    metrics = recorder.snapshot()
    assert metrics.gap_max_s == pytest.approx(2.0)
    assert metrics.tail_s == 0.0


def test_the_audible_onset_adds_leading_silence_and_waits():
    recorder = MetricsRecorder(clock=lambda: 0.0)
    recorder.chunk(chunk(2, level=0.001), at=0.2)  # -60 dBFS: 160 ms of silence
    late = np.concatenate([np.zeros(480, np.float32), np.full(1440, 0.01, np.float32)])  # -40 dBFS after 20 ms
    recorder.chunk(AudioChunk(late, RATE, 1, True, 1), at=0.5)
    metrics = recorder.snapshot()
    assert metrics.leading_silence_s == pytest.approx(0.18)
    assert metrics.audible_onset_s == pytest.approx(0.52)  # the second chunk came late: 0.5 s, then 20 ms


def test_onset_windows_reach_over_chunk_borders():
    recorder = MetricsRecorder(clock=lambda: 0.0)
    samples = np.zeros(960, np.float32)
    samples[500:] = 0.5
    for start in range(0, 960, 100):
        recorder.chunk(AudioChunk(samples[start : start + 100], RATE, start // 100, False), at=0.1)
    assert recorder.snapshot().leading_silence_s == pytest.approx(0.02)


def test_silence_has_no_onset():
    recorder = MetricsRecorder(clock=lambda: 0.0)
    recorder.chunk(chunk(2, level=0.0), at=0.2)
    assert recorder.snapshot().audible_onset_s is None


def test_empty_chunks_are_no_arrivals_and_nothing_at_all_is_no_error():
    recorder = MetricsRecorder(clock=lambda: 1.0)
    recorder.chunk(AudioChunk(np.zeros(0, np.float32), RATE, 0, True), at=2.0)
    recorder.finish("cancelled", at=3.0)
    metrics = recorder.snapshot()
    assert (metrics.ttfa_s, metrics.uninterrupted_s, metrics.audible_onset_s) == (None, None, None)
    assert (metrics.rtf, metrics.audio_s, metrics.chunk_frames, metrics.wall_s) == (0.0, 0.0, (), 2.0)


def test_first_frame_and_request_times():
    ticks = iter([5.0, 6.0, 6.4, 9.9])
    recorder = MetricsRecorder(clock=lambda: next(ticks))
    recorder.start()
    recorder.first_frame()
    recorder.first_frame(at=7.0)
    recorder.chunk(chunk(1), at=6.5)
    recorder.finish("length")
    metrics = recorder.snapshot()
    assert metrics.first_frame_s == pytest.approx(0.4)
    assert metrics.ttfa_s == pytest.approx(0.5)
    assert (metrics.wall_s, metrics.finish_reason) == (pytest.approx(3.9), "length")


def test_audio_that_was_cut_shows():
    recorder = MetricsRecorder(clock=lambda: 0.0)
    recorder.chunk(AudioChunk(np.ones(FRAME, np.float32), RATE, 0, True, 1), at=1.0)
    recorder.cut(4)
    assert recorder.snapshot().cut_s == pytest.approx(0.32)


def test_a_late_cancel_changes_the_reason_not_the_time():
    recorder = MetricsRecorder(clock=lambda: 0.0)
    recorder.finish("stop", at=1.0)
    recorder.finish("cancelled", at=9.0)
    assert (recorder.snapshot().finish_reason, recorder.snapshot().wall_s) == ("cancelled", 1.0)


def test_unfinished_figures_run_to_the_latest_chunk():
    recorder = MetricsRecorder(clock=lambda: 0.0)
    recorder.chunk(chunk(1), at=0.75)
    assert (recorder.snapshot().finish_reason, recorder.snapshot().wall_s) == ("unfinished", 0.75)


def test_as_dict_is_json():
    values = json.loads(json.dumps(recorded([(1 / 3, 1), (0.6, 25)]).as_dict()))
    assert values["ttfa_s"] == 0.3333
    assert values["chunk_frames"] == [1, 25]
    assert set(values) == set(UtteranceMetrics.__dataclass_fields__)
