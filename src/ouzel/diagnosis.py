"""What `ouzel doctor` finds out: this machine, the runtimes on it, and how long each stage of a bundle takes here."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

import numpy as np

from ouzel.adapters import SubtalkerSampling
from ouzel.api.load import stage_ids
from ouzel.bundle import Bundle
from ouzel.bundle.progress import Progress, silent
from ouzel.errors import OuzelError
from ouzel.models.registry import get_family
from ouzel.pipeline import DeployConfig
from ouzel.runtimes.base import StageOptions
from ouzel.runtimes.registry import get_runtime, runtimes
from ouzel.schedule.plan import first_chunk, smallest_sustained_chunk
from ouzel.schedule.speed import SpeedEstimator, SpeedModel

FRAME_MS = 80.0
_REPEATS = 8
_WARM_UP = 2
_PROMPT_ROWS = 16  # a short sentence
_DECODE_SIZES = (1, 8)  # two lengths tell the cost of a call from the cost of a frame
_INSTALL = {"onnxruntime": "pip install onnxruntime"}


@dataclass(frozen=True, slots=True)
class Machine:
    """cores: those this process may use. memory_bytes: None where the system does not say."""

    system: str
    cpu: str
    cores: int
    memory_bytes: int | None
    python: str
    ouzel: str


@dataclass(frozen=True, slots=True)
class RuntimeFinding:
    """One known runtime; `detail` says what was found, or why it cannot be used and how to install it."""

    name: str
    available: bool
    version: str
    detail: str
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StageFinding:
    """One stage as it really runs here. ms: median wall and CPU (all threads) time of one codec frame of 80 ms."""

    stage: str
    runtime: str
    weights: str
    device: str
    threads: int
    wall_ms: float
    cpu_ms: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class Speed:
    """rtf: stage times of a frame / 80 ms, one after the other.

    auto_first: frames of the auto schedule's first chunk.
    auto_least: the smallest chunk that pays for its decode call (None: slower than real time, so no start is safe).
    """

    rtf: float
    auto_first: int
    auto_least: int | None


def machine() -> Machine:
    """Facts about this machine; never fails for what a system does not tell."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return Machine(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        cpu=_cpu_name(),
        cores=cores,
        memory_bytes=_memory(),
        python=platform.python_version(),
        ouzel=metadata.version("ouzel"),
    )


def runtime_findings() -> list[RuntimeFinding]:
    """Every known runtime and whether it can be used; a broken plug-in is a finding, not an error."""
    found = []
    for name in runtimes():
        try:
            status = get_runtime(name).status()
        except OuzelError as error:
            found.append(RuntimeFinding(name, False, "", str(error), ()))
            continue
        detail = status.detail
        if not status.available and name in _INSTALL and "pip install" not in detail:
            detail = f"{detail} ({_INSTALL[name]})" if detail else _INSTALL[name]
        found.append(RuntimeFinding(name, status.available, status.version, detail, status.devices))
    return found


def measure(
    bundle: Bundle, deploy: DeployConfig, threads: int | None = None, progress: Progress = silent
) -> tuple[list[StageFinding], Speed]:
    """Load each stage of the bundle as the deploy file places it and time it on random input; a few seconds.

    threads: of every stage, instead of the deploy file's. Raises what loading raises.
    """
    talker_id, decoder_id = stage_ids(deploy)
    frontend = get_family(bundle.manifest.family).frontend(bundle)
    rng = np.random.default_rng(0)
    hidden, groups = frontend.hidden_size, frontend.groups
    row = rng.standard_normal((1, hidden)).astype(np.float32)
    findings: list[StageFinding] = []
    speeds = SpeedEstimator()

    def choose(stage: str) -> tuple[str, str, StageOptions]:
        edge = deploy.stage(decoder_id if stage == "decoder" else talker_id).edge
        artifact = bundle.artifact(stage, edge.runtime, None if edge.precision == "auto" else edge.precision)
        progress(f"measuring {stage}", len(findings) / 3)
        return (
            artifact.runtime,
            artifact.weights,
            StageOptions(edge.threads if threads is None else threads, edge.precision, edge.device),
        )

    def add(stage: str, wall: float, cpu: float, note: str = "") -> None:
        runtime, weights, used = choose(stage)
        findings.append(StageFinding(stage, runtime, weights, used.device, used.threads, wall, cpu, note))

    runtime, weights, used = choose("talker")
    talker = get_runtime(runtime).load_talker(bundle, bundle.artifact("talker", runtime, weights), used)
    state = talker.start(_PROMPT_ROWS + _REPEATS + _WARM_UP)
    prompt = rng.standard_normal((_PROMPT_ROWS, hidden)).astype(np.float32)
    begin = time.perf_counter()
    talker.forward(state, prompt)
    prefill = (time.perf_counter() - begin) * 1000
    talker_wall, talker_cpu = _time(lambda: talker.forward(state, row))
    add("talker", talker_wall, talker_cpu, f"prompt of {_PROMPT_ROWS} rows: {prefill:.1f} ms")

    runtime, weights, used = choose("predictor")
    predictor = get_runtime(runtime).load_predictor(bundle, bundle.artifact("predictor", runtime, weights), used)
    uniforms = rng.random(groups - 1)
    wall, cpu = _time(lambda: predictor.frame(row[0], 1, SubtalkerSampling(), uniforms))
    add("predictor", wall, cpu)
    speeds.add_talker(1, talker_wall + wall)

    runtime, weights, used = choose("decoder")
    decoder = get_runtime(runtime).load_decoder(bundle, bundle.artifact("decoder", runtime, weights), used)
    decoder_state = decoder.start()
    times = {}
    for size in _DECODE_SIZES:
        codes = np.ones((size, groups), np.int64)
        times[size] = _time(partial(decoder.decode, decoder_state, codes))
        speeds.add_decode(size, times[size][0])
    largest = _DECODE_SIZES[-1]
    wall, cpu = (value / largest for value in times[largest])
    add("decoder", wall, cpu, f"in calls of {largest}; a call of 1: {times[1][0]:.1f} ms")
    progress("measured", 1.0)
    return findings, _speed(findings, speeds.model())


def _speed(findings: list[StageFinding], model: SpeedModel | None) -> Speed:
    rtf = sum(f.wall_ms for f in findings) / FRAME_MS
    if model is None:
        raise OuzelError("The stages were too fast to be timed.")
    chunk, margin = 25, 50.0  # the auto schedule's defaults
    return Speed(rtf, first_chunk(model, chunk, margin), smallest_sustained_chunk(model, chunk))


def _time(work: Callable[[], object]) -> tuple[float, float]:
    """Median wall and CPU milliseconds of one call."""
    wall, cpu = [], []
    for index in range(_WARM_UP + _REPEATS):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        work()
        if index >= _WARM_UP:
            wall.append((time.perf_counter() - begin) * 1000)
            cpu.append((time.process_time() - begin_cpu) * 1000)
    return statistics.median(wall), statistics.median(cpu)


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    by_key = {key.strip(): value.strip() for key, value in facts.items()}
    return by_key.get("model name") or by_key.get("Model") or platform.machine()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
