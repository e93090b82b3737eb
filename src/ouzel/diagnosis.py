"""What `ouzel doctor` finds out: this machine, the runtimes on it, and how long each stage of a bundle takes here."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from ouzel.api.placement import place_stages, with_threads
from ouzel.bundle import Bundle
from ouzel.bundle.progress import Progress, silent
from ouzel.errors import OuzelError
from ouzel.models.registry import get_family
from ouzel.pipeline import DeployConfig
from ouzel.runtimes.registry import get_runtime, runtimes, why_not
from ouzel.schedule.plan import FRAME_MS, first_chunk, smallest_sustained_chunk
from ouzel.schedule.speed import SpeedEstimator, SpeedModel
from ouzel.tuning.cells import cores
from ouzel.tuning.timing import DECODE_SIZES, PROMPT_ROWS, Times, time_decoder, time_predictor, time_talker

_SECONDS = 0.3  # of each stage


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
    return Machine(
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        cpu=_cpu_name(),
        cores=cores(),
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
    findings: list[StageFinding] = []
    speeds = SpeedEstimator()

    def add(stage: str, times: Times, note: str = "") -> None:
        at = loaded.placed[stage]
        notes = "; ".join(filter(None, (note, at.instead_of and f"fallback: {at.instead_of}")))
        found = (at.runtime, at.weights, at.device, at.threads, times.wall_ms, times.cpu_ms, notes)
        findings.append(StageFinding(stage, *found))

    progress("measuring talker", 0.2)
    talker = time_talker(loaded.core, _SECONDS)
    add("talker", talker, f"prompt of {PROMPT_ROWS} rows: {talker.once_ms:.1f} ms")
    progress("measuring predictor", 0.5)
    predictor = time_predictor(loaded.predictor, frontend.hidden_size, frontend.groups, _SECONDS)
    add("predictor", predictor)
    speeds.add_talker(1, talker.wall_ms + predictor.wall_ms)
    progress("measuring decoder", 0.8)
    decoder = time_decoder(loaded.decoder, frontend.groups, _SECONDS)
    for size, ms in decoder.calls:
        speeds.add_decode(size, ms)
    add("decoder", decoder, f"in calls of {DECODE_SIZES[-1]}; a call of 1: {decoder.once_ms:.1f} ms")
    progress("measured", 1.0)
    return findings, _speed(findings, speeds.model())


def _speed(findings: list[StageFinding], model: SpeedModel | None) -> Speed:
    rtf = sum(f.wall_ms for f in findings) / FRAME_MS
    if model is None:
        raise OuzelError("The stages were too fast to be timed.")
    chunk, margin = 25, 50.0  # the auto schedule's defaults
    return Speed(rtf, first_chunk(model, chunk, margin), smallest_sustained_chunk(model, chunk))


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
