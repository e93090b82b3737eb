"""A bundle made of a checkpoint folder, or a further runtime's artifacts put into one."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from ouzel.bundle import Bundle, BundleWriter, open_bundle
from ouzel.bundle.bundle import is_bundle
from ouzel.bundle.progress import Progress, part, silent
from ouzel.bundle.verify import file_sha256
from ouzel.conversion.targets import DEFAULT, Target, Weights, check_complete, targets
from ouzel.errors import CheckpointError, MissingExtraError, OuzelError, UsageError
from ouzel.models.base import CloningFamily, Family
from ouzel.models.registry import recognise_family
from ouzel.runtimes.base import ENCODERS, EncoderRuntime
from ouzel.runtimes.registry import get_runtime

_NEEDED = ("torch", "safetensors")
_STATED = ("ouzel", "torch", "onnx", "onnxruntime", "numpy")


def convert(
    checkpoint: str | Path,
    out: str | Path,
    *,
    runtime: str | Sequence[str] = DEFAULT,
    weights: Weights = None,
    decoder: Weights = None,
    backend: str | None = None,
    add: bool = False,
    force: bool = False,
    source: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> Path:
    """Make the bundle folder `out` of a checkpoint folder in Hugging Face layout; returns its path.

    runtime: one or several, by name. weights: of the talker and the code predictor, decoder: of the codec decoder,
    backend: what programs are lowered for (`targets`).
    add: put them into the bundle `out`, which was made of the same checkpoint; what it has already stays as it is, or is made
    again with `force`. source: facts on where the checkpoint came from, kept in the manifest beside the checksums of its files.
    On any error nothing is left of `out`, or `out` is as it was. Raises CheckpointError, UsageError, MissingExtraError (torch is
    not installed) or OuzelError (no room, no memory).
    """
    folder = Path(os.path.expanduser(checkpoint))
    found = targets(runtime, weights, decoder, backend)
    family = recognise_family(_read_config(folder))
    base = open_bundle(out) if add else None
    if base is None:
        check_complete(found)
    else:
        _check_new(base, found, force)
    check_extra()
    with BundleWriter(out, force, part(progress, 0.92, 1.0), base=base) as writer:
        progress("reading the checkpoint", 0.0)
        if base is None:
            writer.describe(name=writer.out.name, family=family.name)
        loaded = family.read_checkpoint(folder)
        sums = _checksums(folder, part(progress, 0.0, 0.08))
        if base is None:
            writer.source.update({"name": folder.resolve().name, **(source or {})}, files=sums)
        else:
            _check_source(base, folder, sums)
        try:
            if base is None:
                exact = any(target.weights == "fp32" for target in found)
                family.write_frontend(loaded, writer, "fp32" if exact else found[0].weights, part(progress, 0.08, 0.2))
            _add(family, loaded, writer, found, force, part(progress, 0.2, 0.88))
            _add_encoders(family, loaded, writer, found, force, part(progress, 0.88, 0.92))
        except MemoryError:
            raise OuzelError(
                f"Not enough memory to convert {folder}; close other programs or convert on a larger machine."
            ) from None
        writer.versions.update(_versions(found))
        for artifact in writer.artifacts:
            writer.placement.setdefault(artifact.stage, {"runtime": artifact.runtime, "weights": artifact.weights})
    progress("done", 1.0)
    return writer.out


def _add(family: Family, loaded: Any, writer: BundleWriter, found: Sequence[Target], force: bool, progress: Progress) -> None:
    """The artifacts of each target, from networks of its own: an export may change what it exports."""
    for index, target in enumerate(found):
        step = part(progress, index / len(found), (index + 1) / len(found))
        step("building the networks", 0.0)
        networks = family.networks(loaded)
        name = target.runtime.name
        there = {(a.stage, a.weights): a for a in writer.artifacts if a.runtime == name}
        if force:
            for stage, weights in target.artifacts.items():
                if (stage, weights) in there:
                    writer.drop(there.pop((stage, weights)))
        before = writer.artifacts
        with writer.folder_of(name, f"{name}-{target.label}"):
            target.runtime.convert(networks, writer, target.weights, target.decoder, part(step, 0.06, 1.0))
        del networks
        for artifact in writer.artifacts[len(before) :]:
            if (artifact.stage, artifact.weights) in there:
                writer.drop(artifact)


def _add_encoders(
    family: Family, loaded: Any, writer: BundleWriter, found: Sequence[Target], force: bool, progress: Progress
) -> None:
    """What reads recordings, if the checkpoint has it."""
    if not isinstance(family, CloningFamily):
        return
    there = [artifact for artifact in writer.artifacts if artifact.stage in ENCODERS]
    if there and not force:
        return
    for artifact in there:
        writer.drop(artifact)
    encoders = family.encoders(loaded)
    for index, stage in enumerate(ENCODERS):
        network, runtime = getattr(encoders, stage), encoder_runtime(stage, found)
        if network is not None and runtime is not None:
            step = part(progress, index / len(ENCODERS), (index + 1) / len(ENCODERS))
            runtime.convert_encoder(stage, network, writer, step)


def encoder_runtime(stage: str, found: Sequence[Target]) -> EncoderRuntime | None:
    """The first of the targets' runtimes that can carry out this one of ENCODERS, else the runtime that every install has."""
    for runtime in (*(target.runtime for target in found), get_runtime(DEFAULT)):
        if isinstance(runtime, EncoderRuntime) and stage in runtime.encoders:
            return runtime
    return None


def _check_new(base: Bundle, found: Sequence[Target], force: bool) -> None:
    there = {(a.runtime, a.stage, a.weights) for a in base.manifest.artifacts}
    for target in found:
        name = target.runtime.name
        if not force and {(name, stage, weights) for stage, weights in target.artifacts.items()} <= there:
            listing = ", ".join(f"{stage} {weights}" for stage, weights in target.artifacts.items())
            raise UsageError(
                f"{base.root} has {listing} of {name} already; choose other weights, or pass --force to make it again."
            )


def _check_source(base: Bundle, folder: Path, sums: Mapping[str, str]) -> None:
    own = base.manifest.source.get("files")
    if not isinstance(own, dict) or not own:
        raise UsageError(f"{base.root} does not say which checkpoint it was made of, so nothing can be added; convert it again.")
    differing = sorted(name for name in {*own, *sums} if own.get(name) != sums.get(name))
    if differing:
        raise UsageError(
            f"{base.root} was made of another checkpoint than {folder} ({', '.join(differing)} differ): "
            "give the one it was made of, or convert to a new folder."
        )


def _read_config(folder: Path) -> Mapping[str, Any]:
    if not os.path.isdir(folder):
        raise CheckpointError(f"{folder} is not a folder; `ouzel pull OWNER/NAME` fetches a checkpoint from the hub.")
    path = folder / "config.json"
    if is_bundle(folder):
        raise CheckpointError(f"{folder} is already a bundle.")
    if not os.path.isfile(path):
        raise CheckpointError(f"{folder} is not a checkpoint: it has no config.json.")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as err:
        raise CheckpointError(f"{path} cannot be read ({err}).") from None
    if not isinstance(config, dict):
        raise CheckpointError(f"{path} must hold a mapping, found {type(config).__name__}.")
    return config


def check_extra() -> None:
    """MissingExtraError unless the conversion libraries are there."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"Converting needs {' and '.join(missing)}; install it with: pip install 'ouzel[convert]'.")


def _checksums(folder: Path, progress: Progress) -> dict[str, str]:
    paths = sorted(p for p in folder.rglob("*") if p.suffix == ".safetensors" or p.name == "config.json")
    sums: dict[str, str] = {}
    for index, path in enumerate(paths):
        progress("checksums of the checkpoint", index / len(paths))
        sums[path.relative_to(folder).as_posix()] = file_sha256(path)
    return sums


def _versions(made: Sequence[Target]) -> dict[str, str]:
    states = {target.runtime.name: target.runtime.status() for target in made}
    found = {name: state.version for name, state in states.items() if state.version}
    for name in _STATED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
