"""A bundle, a family and a runtime of toys: everything that `ouzel.load` goes through, without torch and without weights."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ouzel.bundle import BundleWriter
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
    """Remembers what it was asked to load and how."""

    name = "toy"
    offer = Offer({"talker": ("int4", "fp32"), "predictor": ("int4", "fp32"), "decoder": ("fp32",)})

    def __init__(self) -> None:
        self.loaded: list[tuple[str, str, StageOptions]] = []

    def status(self) -> RuntimeStatus:
        return RuntimeStatus(True)

    def load_talker(self, bundle, artifact, options):
        self.loaded.append(("talker", artifact.weights, options))
        return ToyCore()

    def load_predictor(self, bundle, artifact, options):
        self.loaded.append(("predictor", artifact.weights, options))
        return ToyPredictor()

    def load_decoder(self, bundle, artifact, options):
        self.loaded.append(("decoder", artifact.weights, options))
        return ToyDecoder()

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


def write_bundle(out: Path) -> Path:
    rng = np.random.default_rng(0)
    with BundleWriter(out) as writer:
        writer.describe(family="toy_family", tokenizer="words", task="CustomVoice")
        writer.array("tables/codec.npy", rng.standard_normal((VOCAB, HIDDEN)).astype(np.float32))
        writer.array("tables/residual.npy", rng.standard_normal((GROUPS - 1, CODES, HIDDEN)).astype(np.float32))
        for stage in ("talker", "predictor", "decoder"):
            for weights in ("int4", "fp32") if stage != "decoder" else ("fp32",):
                rel = f"toy/{stage}-{weights}"
                writer.path(rel).write_bytes(b"toy")
                writer.add_artifact(stage, "toy", weights, [rel])
    return out


@contextmanager
def registered() -> Iterator[ToyRuntime]:
    runtime = ToyRuntime()
    register_family(ToyFamily())
    register_runtime(runtime)
    try:
        yield runtime
    finally:
        unregister_family("toy_family")
        unregister_runtime("toy")


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
