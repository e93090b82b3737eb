"""Write tests/golden/schedule/*.json from the real vLLM-Omni 0.30.0 stage processors.

Run from the repository root with the Python of a venv that has vllm-omni; without a GPU, its CPU platform plug-in on PYTHONPATH
and VLLM_CPU_OMP_THREADS_BIND=nobind as for tools/oracle/omni.py:

    VENV/bin/python tools/golden_schedule.py

The server's own functions are called step by step with a bare transfer manager, as its save thread does; only the module's
clock is replaced, so that the adaptive schedule can be repeated. Frames are random ids from a fixed seed.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from vllm_omni.model_executor.stage_input_processors import qwen3_tts as processors

OUT = Path(__file__).parent.parent / "tests" / "golden" / "schedule"
SEED = 20261129
STOCK = {"codec_chunk_frames": 25, "codec_left_context_frames": 72}
FULL_CODES_UP_TO = 12  # frames of a case up to which payloads are stored in full beside their checksum


def entry(value: int) -> SimpleNamespace:
    return SimpleNamespace(list_data=[value])


def drive(case: dict, frames: torch.Tensor, reference: torch.Tensor) -> list[dict]:
    """Feed one request frame by frame; returns the payloads with the step they came in."""
    clock = [0.0]
    processors.time = SimpleNamespace(monotonic=lambda: clock[0] / 1000.0)
    manager = SimpleNamespace(
        code_prompt_token_ids=defaultdict(list),
        put_req_chunk=defaultdict(int),
        ramp_chunk_count=defaultdict(int),
        request_payload={},
        connector=SimpleNamespace(config={"extra": case["extra"]}),
        scheduler_max_num_seqs=case["max_num_seqs"],
    )
    for other in range(case["others"]):
        manager.code_prompt_token_ids[f"other-{other}"].append(frames[0])
    entries = {} if case["request_initial"] is None else {"initial_codec_chunk_frames": entry(case["request_initial"])}
    request = SimpleNamespace(
        external_req_id="r", is_finished=lambda: False, additional_information=SimpleNamespace(entries=entries)
    )
    payloads = []
    position = 0
    for step, kind in enumerate(case["steps"]):
        clock[0] = case["times_ms"][step]
        output: dict | None = None
        if kind != ".":
            row = frames[position : position + 1] if kind == "f" else torch.zeros(1, 16, dtype=torch.long)
            output = {"codes": {"audio": row}, "meta": {"codec_frame_valid": torch.tensor([kind == "f"])}}
            if step == 0 and case["reference"]:
                output["codes"]["ref"] = reference[: case["reference"]]
            position += kind == "f"
        finished = step == len(case["steps"]) - 1
        payload = processors.talker2code2wav_async_chunk(manager, output, request, is_finished=finished)
        if payload is None:
            continue
        manager.put_req_chunk["r"] += 1
        manager.ramp_chunk_count["r"] += 1
        payloads.append(describe(step, payload, case["frames"]))
    return payloads


def describe(step: int, payload: object, total: int) -> dict:
    codes = payload.codes.audio.numpy().astype("<i8")
    meta = payload.meta
    result = {
        "step": step,
        "frames": len(codes) // 16 - meta.left_context_size,
        "left_context_size": meta.left_context_size,
        "finished": bool(meta.finished),
        "sha256": hashlib.sha256(codes.tobytes()).hexdigest(),
    }
    for name in ("ref_context_size", "ref_context_request_id", "ref_context_included"):
        if getattr(meta, name) is not None:
            result[name] = getattr(meta, name)
    if total <= FULL_CODES_UP_TO:
        result["codes"] = codes.tolist()
    return result


def case(name: str, frames: int, extra: dict, **options: object) -> dict:
    """Steps: "-" an invalid row from the prefill, "f" a frame, "." the end without a row (none with `end_with_frame`).

    others: requests that hold frames already. The server counts the current one among them only if its first call brings a frame.
    """
    steps = ("" if options.get("no_prefill") else "-") + "f" * frames + ("" if options.get("end_with_frame") else ".")
    intervals = options.get("intervals_ms") or [20.0] * len(steps)
    return {
        "name": name,
        "frames": frames,
        "extra": {**STOCK, **extra},
        "request_initial": options.get("request_initial"),
        "others": options.get("others", 0),
        "max_num_seqs": options.get("max_num_seqs", 64),
        "reference": options.get("reference", 0),
        "steps": steps,
        "times_ms": np.cumsum(intervals[: len(steps)]).round(3).tolist(),
    }


def async_cases() -> list[dict]:
    random = np.random.default_rng(SEED + 1)
    ramp = {"codec_chunk_ramp": [4, 4, 8, 16, 25], "initial_codec_chunk_frames": 1}
    cases = [
        case("fixed 1/25", 60, {"initial_codec_chunk_frames": 1}),
        case("fixed 10/25", 90, {"initial_codec_chunk_frames": 10}),
        case("fixed 8/16", 60, {"codec_chunk_frames": 16, "initial_codec_chunk_frames": 8}),
        case("initial beyond the chunk", 60, {"initial_codec_chunk_frames": 40}),
        case("request initial 0", 60, {"initial_codec_chunk_frames": 1}, request_initial=0),
        case("request initial 5", 60, {"initial_codec_chunk_frames": 1}, request_initial=5),
        case("request initial 99", 60, {"initial_codec_chunk_frames": 1}, request_initial=99),
        case("ramp", 120, ramp),
        case("ramp ignores the request", 60, ramp, request_initial=3),
        case("ramp as text, off the chunk", 70, {"codec_chunk_ramp": "2, 3,5"}),
        case("ramp unusable", 60, {"codec_chunk_ramp": [4], "initial_codec_chunk_frames": 10}),
        case("ends with its last frame", 30, {"initial_codec_chunk_frames": 1}, end_with_frame=True),
        case("ends on a boundary with its frame", 26, {"initial_codec_chunk_frames": 1}, end_with_frame=True),
        case("ends on a boundary", 26, {"initial_codec_chunk_frames": 1}),
        case("one frame", 1, {"initial_codec_chunk_frames": 1}),
        case("shorter than the first chunk", 4, {"initial_codec_chunk_frames": 10}),
        case("exactly the first chunk", 10, {"initial_codec_chunk_frames": 10}),
        case("ramp ends on a boundary", 8, ramp),
        case("no frame", 0, {"initial_codec_chunk_frames": 1}),
        case("reference of 12", 30, {"initial_codec_chunk_frames": 1}, reference=12),
        case("reference of 12, short", 3, {"initial_codec_chunk_frames": 1}, reference=12),
        case("reference cut to 72", 30, {"initial_codec_chunk_frames": 1}, reference=100),
        case("reference cut to 5", 30, {"initial_codec_chunk_frames": 1, "ref_code_context_frames": 5}, reference=12),
    ]
    for chunk, capacity, others in [
        (25, 64, 0),
        (25, 64, 16),
        (25, 64, 31),
        (25, 64, 32),
        (25, 64, 70),
        (25, 8, 4),
        (25, 1, 0),
        (16, 8, 5),
        (50, 8, 7),
        (2, 8, 1),
        (1, 8, 1),
    ]:
        extra = {"codec_chunk_frames": chunk, "initial_codec_chunk_frames": 0}
        cases.append(case(f"dynamic {chunk}, {others} of {capacity}", 60, extra, others=others, max_num_seqs=capacity))
    for others, capacity in [(31, 64), (0, 1), (3, 0)]:
        name = f"dynamic 25, {others} of {capacity}, frame at once"
        cases.append(case(name, 60, {}, others=others, max_num_seqs=capacity, no_prefill=True))
    for mean, spread in [(8, 2), (16, 5), (40, 15), (56, 20), (64, 30), (80, 30), (120, 60)]:
        intervals = (mean + spread * (random.random(140) - 0.5)).tolist()
        extra = {"codec_chunk_adaptive": True, "codec_chunk_ramp": [4, 4, 8], "initial_codec_chunk_frames": 1}
        cases.append(case(f"adaptive {mean} ms", 120, extra, intervals_ms=intervals, request_initial=7))
    stall = [30.0] * 40 + [900.0] + [30.0] * 99
    tuned = {
        "codec_chunk_adaptive": True,
        "codec_chunk_min_frames": 0,
        "codec_chunk_safety_margin_ms": 120,
        "codec_chunk_ramp_divisor": 8,
        "codec_chunk_ramp_delta_min": 3,
    }
    cases.append(case("adaptive tuned, with a stall", 110, tuned, intervals_ms=stall, others=32))
    early = [16.0] * 15 + [600.0] + [16.0] * 80
    cases.append(case("adaptive overshoots after a stall", 90, {"codec_chunk_adaptive": True}, intervals_ms=early))
    cases.append(case("adaptive ends on a boundary", 6, {"codec_chunk_adaptive": True}))
    cases.append(case("adaptive shorter than its start", 1, {"codec_chunk_adaptive": True}))
    return cases


def sync_cases(frames: torch.Tensor, reference: torch.Tensor) -> list[dict]:
    """Full payloads and placeholder lengths; inputs and outputs are stored in full."""
    noisy = frames[:9].clone()
    noisy[0] = 0
    noisy[2, 3] = -1
    noisy[4, 0] = 2150
    inputs = [
        ("plain", frames[:5], None, 0, 6),
        ("filtered", noisy, None, 0, 0),
        ("filtered and cropped", noisy, None, 0, 4),
        ("reference", frames[:3], reference[:4], 0, 4),
        ("reference cut", frames[:3], reference[:4], 2, 4),
        ("flat reference", frames[:3], reference[:4].reshape(-1), 3, 4),
        ("nothing usable", torch.zeros(3, 16, dtype=torch.long), reference[:4], 0, 4),
        ("nothing at all", None, None, 0, 0),
    ]
    results = []
    for name, audio, ref, ref_len, tokens in inputs:
        output: dict = {}
        if audio is not None:
            output["codes.audio"] = audio
        if ref is not None:
            output |= {"codes.ref": [ref], "meta.ref_code_len": torch.tensor([ref_len])}
        request = SimpleNamespace(request_id="r", output_token_ids=[0] * tokens)
        payload = processors.talker2code2wav_full_payload(None, output, request)
        nested = {"codes": {"audio": audio, "ref": ref}, "meta": {"ref_code_len": ref_len}}
        finished = SimpleNamespace(
            outputs=[SimpleNamespace(multimodal_output=nested, cumulative_token_ids=[0] * tokens)], finished=True
        )
        (prompt,) = processors.talker2code2wav_token_only([finished])
        info = prompt.get("additional_information") or {}
        results.append(
            {
                "name": name,
                "audio": None if audio is None else audio.tolist(),
                "ref": None if ref is None else ref.tolist(),
                "ref_len": ref_len,
                "output_tokens": tokens,
                "codes": payload["codes"]["audio"].tolist(),
                "left_context_size": payload["meta"].get("left_context_size", 0),
                "finished": bool(payload["meta"]["finished"]),
                "prompt_len": len(prompt["prompt_token_ids"]),
                "prompt_left_context_size": info.get("meta", {}).get("left_context_size", 0),
            }
        )
    return results


def main() -> None:
    random = np.random.default_rng(SEED)
    frames = torch.from_numpy(random.integers(1, 2048, (130, 16)))
    reference = torch.from_numpy(random.integers(1, 2048, (100, 16)))
    versions = {name: version(name) for name in ("vllm-omni", "torch", "numpy")} | {"python": platform.python_version()}
    source = {"command": "VENV/bin/python tools/golden_schedule.py", "seed": SEED, "versions": versions}
    cases = async_cases()
    for item in cases:
        item["payloads"] = drive(item, frames, reference)
    OUT.mkdir(parents=True, exist_ok=True)
    write("async.json", {"source": source, "frames": frames.tolist(), "reference": reference.tolist(), "cases": cases})
    write("sync.json", {"source": source, "cases": sync_cases(frames, reference)})


def write(name: str, content: dict) -> None:
    """One line a top-level item and a case, so that a changed case is a readable diff."""
    items = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in content.items() if key != "cases"]
    cases = ",\n".join(json.dumps(value) for value in content["cases"])
    text = "{\n" + ",\n".join(items) + ',\n"cases": [\n' + cases + "\n]\n}\n"
    json.loads(text)
    (OUT / name).write_text(text)
    print(name, len(content["cases"]), "cases", len(text), "bytes")


if __name__ == "__main__":
    main()
