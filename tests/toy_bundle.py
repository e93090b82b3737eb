"""A bundle, a family and a runtime of toys: everything that `ouzel.load` goes through, without torch and without weights."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ouzel.bundle import BundleWriter
from ouzel.errors import choose
from ouzel.models.qwen3_tts.pipeline import PIPELINE
from ouzel.models.registry import register_family, unregister_family
from ouzel.runtimes.base import Offer, RuntimeStatus, StageOptions
from ouzel.runtimes.registry import register_runtime, unregister_runtime
from toys import GROUPS, HIDDEN, ToyDecoder, ToyFrontend, digest

VOCAB = 2200  # the end id 2150 is in it
CODES = 2048


class ToyCore:
    hidden_size = HIDDEN
    vocab_size = VOCAB
    max_positions = 400

    def start(self, positions: int) -> list[bytes]:
        return []

    def forward(self, state: list[bytes], rows):
        state.append(rows.tobytes())
        rng = np.random.default_rng(digest(tuple(state)))
        logits = rng.standard_normal(VOCAB).astype(np.float32)
        if len(state) > 12:
            logits[2150] = 50.0
        return rng.standard_normal(HIDDEN).astype(np.float32), logits


class ToyPredictor:
    def frame(self, hidden, code0, sampling, uniforms):
        return (np.arange(GROUPS - 1) + code0 + int(uniforms[0] * 100)) % CODES


class ToyRuntime:
    """Remembers what it was asked to load and how. why_not: what is in the way of using it."""

    why_not = ""
    offer = Offer({"talker": ("int4", "fp32"), "predictor": ("int4", "fp32"), "decoder": ("fp32",)})

    def __init__(self, name: str = "toy") -> None:
        self.name = name
        self.loaded: list[tuple[str, str, StageOptions]] = []

    def status(self) -> RuntimeStatus:
        return RuntimeStatus(not self.why_not, detail=self.why_not, devices=("cpu", "npu"))

    def load_talker(self, bundle, artifact, options):
        self._note(artifact, options)
        return ToyCore()

    def load_predictor(self, bundle, artifact, options):
        self._note(artifact, options)
        return ToyPredictor()

    def load_decoder(self, bundle, artifact, options):
        self._note(artifact, options)
        return ToyDecoder()

    def _note(self, artifact, options) -> None:
        if options.precision not in ("auto", artifact.weights, "bf16"):
            raise choose(f"precision of this {artifact.stage}", options.precision, ("auto", artifact.weights, "bf16"))
        if options.device not in ("cpu", "npu"):
            raise choose(f"device of {self.name}", options.device, ("cpu", "npu"))
        self.loaded.append((artifact.stage, artifact.weights, options))

    def convert(self, networks, writer, weights, decoder, progress) -> None:
        raise RuntimeError("toys are not converted")


class ToyFamily:
    name = "toy_family"

    def pipeline(self):
        return PIPELINE

    def recognises(self, config) -> bool:
        return False

    def read_checkpoint(self, path):
        raise RuntimeError("toys are not converted")

    write_frontend = networks = read_checkpoint

    def frontend(self, bundle, *, max_instructions=None):
        return ToyFrontend()


def write_bundle(out: Path, runtimes: Sequence[str] = ("toy",)) -> Path:
    rng = np.random.default_rng(0)
    with BundleWriter(out) as writer:
        writer.describe(family="toy_family", tokenizer="words", task="CustomVoice")
        writer.array("tables/codec.npy", rng.standard_normal((VOCAB, HIDDEN)).astype(np.float32))
        writer.array("tables/residual.npy", rng.standard_normal((GROUPS - 1, CODES, HIDDEN)).astype(np.float32))
        for name, stage in itertools.product(runtimes, ToyRuntime.offer.stages):
            for weights in ToyRuntime.offer.stages[stage]:
                rel = f"{name}/{stage}-{weights}"
                writer.path(rel).write_bytes(b"toy")
                writer.add_artifact(stage, name, weights, [rel])
    return out


@contextmanager
def registered(*names: str) -> Iterator[ToyRuntime]:
    """The toy family and a toy runtime of each name ("toy" without one); yields the first."""
    found = [ToyRuntime(name) for name in names or ("toy",)]
    register_family(ToyFamily())
    for runtime in found:
        register_runtime(runtime)
    try:
        yield found[0]
    finally:
        unregister_family("toy_family")
        for runtime in found:
            unregister_runtime(runtime.name)


DEPLOY = """
pipeline: qwen3_tts
connectors:
  c: {name: SharedMemoryConnector, extra: {codec_chunk_frames: 8, initial_codec_chunk_frames: 2}}
stages:
  - stage_id: 0
    max_num_seqs: 16
    output_connectors: {to_stage_1: c}
    default_sampling_params: {temperature: 0.5, seed: 9}
  - stage_id: 1
    input_connectors: {from_stage_0: c}
edge: {stages: {0: {threads: 3}, 1: {threads: 2}}}
playback: {high_water_s: 1.5}
"""
