"""What `ouzel doctor` finds out: this machine, the runtimes on it, and how long each stage of a bundle takes here."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path

import numpy as np

from ouzel.adapters import SubtalkerSampling
from ouzel.api.placement import place_stages, with_threads
from ouzel.bundle import Bundle
from ouzel.bundle.progress import Progress, silent
from ouzel.errors import OuzelError
from ouzel.models.registry import get_family
from ouzel.pipeline import DeployConfig
from ouzel.runtimes.registry import get_runtime, runtimes, why_not
from ouzel.schedule.plan import first_chunk, smallest_sustained_chunk
from ouzel.schedule.speed import SpeedEstimator, SpeedModel

FRAME_MS = 80.0
_REPEATS = 8
_WARM_UP = 2
_PROMPT_ROWS = 16  # a short sentence
_DECODE_SIZES = (1, 8)  # two lengths tell the cost of a call from the cost of a frame


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
    """One known runtime; `detail` says what was found, or why it cannot be used and how to install it.

    offer: stage -> weights that it can be converted to.
    """

    name: str
    available: bool
    version: str
    detail: str
    devices: tuple[str, ...]
    offer: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


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
            runtime = get_runtime(name)
            status = runtime.status()
        except OuzelError as error:
            found.append(RuntimeFinding(name, False, "", str(error), ()))
            continue
        detail = status.detail if status.available else why_not(runtime, status)
        offer = {stage: tuple(names) for stage, names in runtime.offer.stages.items()}
        found.append(RuntimeFinding(name, status.available, status.version, detail, status.devices, offer))
    return found


def measure(
    bundle: Bundle,
    deploy: DeployConfig,
    threads: int | None = None,
    progress: Progress = silent,
    *,
    fallback: bool = False,
) -> tuple[list[StageFinding], Speed]:
    """Load the stages as the deploy file places them and time each on random input; a few seconds.

    threads: of every stage, instead of the deploy file's. Raises what loading raises.
    """
    progress("loading the stages", 0.0)
    frontend = get_family(bundle.manifest.family).frontend(bundle)
    loaded = place_stages(bundle, with_threads(deploy, threads), fallback=fallback)
    rng = np.random.default_rng(0)
    hidden, groups = frontend.hidden_size, frontend.groups
    row = rng.standard_normal((1, hidden)).astype(np.float32)
    findings: list[StageFinding] = []
    speeds = SpeedEstimator()

    def add(stage: str, wall: float, cpu: float, note: str = "") -> None:
        at = loaded.placed[stage]
        notes = "; ".join(filter(None, (note, at.instead_of and f"fallback: {at.instead_of}")))
        findings.append(StageFinding(stage, at.runtime, at.weights, at.device, at.threads, wall, cpu, notes))

    progress("measuring talker", 0.2)
    talker = loaded.core
    state = talker.start(_PROMPT_ROWS + _REPEATS + _WARM_UP)
    prompt = rng.standard_normal((_PROMPT_ROWS, hidden)).astype(np.float32)
    begin = time.perf_counter()
    talker.forward(state, prompt)
    prefill = (time.perf_counter() - begin) * 1000
    talker_wall, talker_cpu = _time(lambda: talker.forward(state, row))
    add("talker", talker_wall, talker_cpu, f"prompt of {_PROMPT_ROWS} rows: {prefill:.1f} ms")

    progress("measuring predictor", 0.5)
    predictor = loaded.predictor
    uniforms = rng.random(groups - 1)
    wall, cpu = _time(lambda: predictor.frame(row[0], 1, SubtalkerSampling(), uniforms))
    add("predictor", wall, cpu)
    speeds.add_talker(1, talker_wall + wall)

    progress("measuring decoder", 0.8)
    decoder = loaded.decoder
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
