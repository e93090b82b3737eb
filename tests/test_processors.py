"""The payload builders against the real server's output (tests/golden/schedule, written by tools/golden_schedule.py)."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from ouzel.errors import SynthesisError, UsageError
from ouzel.models.qwen3_tts.processors import (
    AsyncChunkProcessor,
    CodecPayload,
    TalkerOutput,
    filter_frames,
    talker2code2wav_async_chunk,
    talker2code2wav_full_payload,
    talker2code2wav_token_only,
)
from ouzel.schedule import CONNECTOR_KEYS, ScheduleSpec

GOLDEN = Path(__file__).parent / "golden" / "schedule"
ASYNC = json.loads((GOLDEN / "async.json").read_text())
SYNC = json.loads((GOLDEN / "sync.json").read_text())
FRAMES = np.array(ASYNC["frames"], np.int64)
REFERENCE = np.array(ASYNC["reference"], np.int64)
ZEROS = np.zeros((1, 16), np.int64)


def processor(case) -> AsyncChunkProcessor:
    extra = case["extra"]
    spec = ScheduleSpec.from_connector(**{key: extra[key] for key in CONNECTOR_KEYS if key in extra})
    active = case["others"] + (case["steps"][0] == "f")
    run = spec.start(request_initial=case["request_initial"], active=active, max_num_seqs=case["max_num_seqs"])
    context = extra.get("ref_code_context_frames") or extra["codec_left_context_frames"]
    return AsyncChunkProcessor("r", run, ref_context_frames=context)


def described(step: int, payload: CodecPayload, in_full: bool) -> dict:
    result = {
        "step": step,
        "frames": payload.frame_count - payload.left_context_size,
        "left_context_size": payload.left_context_size,
        "finished": payload.finished,
        "sha256": hashlib.sha256(payload.codes.astype("<i8").tobytes()).hexdigest(),
        "ref_context_size": payload.ref_context_size,
        "ref_context_request_id": payload.ref_context_request_id,
        "ref_context_included": payload.ref_context_included,
    }
    result = {name: value for name, value in result.items() if value is not None}
    return result | ({"codes": payload.codes.tolist()} if in_full else {})


@pytest.mark.parametrize("case", ASYNC["cases"], ids=lambda case: case["name"])
def test_async_chunks_equal_the_servers(case):
    state, position, payloads = processor(case), 0, []
    for step, (kind, now) in enumerate(zip(case["steps"], case["times_ms"], strict=True)):
        output = None
        if kind != ".":
            ref = REFERENCE[: case["reference"]] if step == 0 else None
            output = TalkerOutput(FRAMES[position : position + 1] if kind == "f" else ZEROS, np.array([kind == "f"]), ref)
            position += kind == "f"
        payload = talker2code2wav_async_chunk(state, output, now, finished=step == len(case["steps"]) - 1)
        if payload is not None:
            payloads.append(described(step, payload, "codes" in case["payloads"][0]))
    assert payloads == case["payloads"]


@pytest.mark.parametrize("case", SYNC["cases"], ids=lambda case: case["name"])
def test_sync_payloads_equal_the_servers(case):
    arrays = {name: None if case[name] is None else np.array(case[name], np.int64) for name in ("audio", "ref")}
    output = TalkerOutput(arrays["audio"], ref=arrays["ref"], ref_len=case["ref_len"])
    payload = talker2code2wav_full_payload(output, output_tokens=case["output_tokens"])
    assert payload.codes.tolist() == case["codes"]
    assert (payload.left_context_size, payload.finished) == (case["left_context_size"], case["finished"])
    (placeholder,) = talker2code2wav_token_only([(output, case["output_tokens"])])
    assert placeholder.prompt_len == case["prompt_len"]
    assert placeholder.left_context_size == case["prompt_left_context_size"]


def test_goldens_name_the_server_they_come_from():
    assert ASYNC["source"]["versions"]["vllm-omni"] == SYNC["source"]["versions"]["vllm-omni"] == "0.30.0"


def test_payload_layout_is_codebook_major_and_reversible():
    frames = np.arange(32, dtype=np.int64).reshape(2, 16)
    payload = CodecPayload.from_frames(frames, reference=frames[:1] + 100)
    assert payload.codes[:3].tolist() == [100, 0, 16]
    assert (payload.frames() == np.concatenate([frames[:1] + 100, frames])).all()
    reference, new = payload.split()
    assert (reference == frames[:1] + 100).all()
    assert (new == frames).all()


def test_payload_refuses_a_broken_length():
    with pytest.raises(UsageError, match="17 ids is not a whole number of frames of 16"):
        CodecPayload(np.ones(17, np.int64))


def test_payload_refuses_more_context_than_frames():
    with pytest.raises(UsageError, match="left_context_size 2"):
        CodecPayload(np.ones(16, np.int64), left_context_size=2)


@pytest.mark.parametrize("codes", [np.ones((1, 16), np.int64), np.ones(16, np.int32)])
def test_payload_refuses_other_arrays(codes):
    with pytest.raises(UsageError, match="flat int64"):
        CodecPayload(codes)


@pytest.mark.parametrize("bad", [-1, 2048, 2150])
def test_ids_outside_the_codebook_never_travel(bad):
    row = FRAMES[:1].copy()
    row[0, 5] = bad
    state = AsyncChunkProcessor("r", ScheduleSpec.parse("fixed:1/25").start())
    with pytest.raises(UsageError, match=r"0\.\.2047"):
        state.step(TalkerOutput(row, True), 0.0)
    assert len(filter_frames(row)) == 0


def test_without_validity_a_row_of_zeros_is_no_frame():
    state = AsyncChunkProcessor("r", ScheduleSpec.parse("fixed:1/25").start())
    assert state.step(TalkerOutput(ZEROS), 0.0) is None
    payload = state.step(TalkerOutput(FRAMES[0]), 1.0)
    assert payload is not None
    assert payload.codes.tolist() == FRAMES[0].tolist()


def test_empty_validity_is_an_error():
    state = AsyncChunkProcessor("r", ScheduleSpec().start())
    with pytest.raises(SynthesisError, match="codec_frame_valid"):
        state.step(TalkerOutput(ZEROS, np.zeros(0, np.bool_)), 0.0)


def test_only_the_last_row_of_a_span_is_new():
    state = AsyncChunkProcessor("r", ScheduleSpec.parse("fixed:1/25").start())
    payload = state.step(TalkerOutput(FRAMES[:3], np.array([False, False, True])), 0.0)
    assert payload is not None
    assert payload.codes.tolist() == FRAMES[2].tolist()


def test_flat_reference_is_accepted_and_a_broken_one_refused():
    state = AsyncChunkProcessor("r", ScheduleSpec.parse("fixed:1/25").start())
    payload = state.step(TalkerOutput(FRAMES[:1], True, REFERENCE[:2].reshape(-1)), 0.0)
    assert payload is not None
    assert payload.left_context_size == 2
    broken = AsyncChunkProcessor("r", ScheduleSpec.parse("fixed:1/25").start())
    with pytest.raises(UsageError, match="Reference codes of 31 ids"):
        broken.step(TalkerOutput(FRAMES[:1], True, REFERENCE[:2].reshape(-1)[1:]), 0.0)


def test_full_schedule_sends_one_payload_at_the_end():
    state = AsyncChunkProcessor("r", ScheduleSpec.parse("full").start(), speaker="vivian", language="english")
    for i in range(40):
        assert state.step(TalkerOutput(FRAMES[i : i + 1], True, REFERENCE[:3]), i * 20.0) is None
    payload = state.step(None, 800.0, finished=True)
    assert payload is not None
    assert (payload.frame_count, payload.left_context_size, payload.finished) == (43, 3, True)
    assert (payload.speaker, payload.language) == ("vivian", "english")
