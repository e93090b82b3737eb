"""What the codec decoder costs and how close it is, for a checkpoint's shapes: process CPU time a frame, SNR, memory.

    python tools/measure_decoder.py CHECKPOINT [--official FULL.npz] [--threads N] [--chunks 1,4,8,25]

FULL.npz is what `tools/golden_decoder.py --full` made of the same checkpoint. Chunk sizes take turns, so that a change of the
machine's load meets all of them; medians are printed with the fastest turn.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from ouzel.models.qwen3_tts.checkpoint import Checkpoint
from ouzel.models.qwen3_tts.network.decoder import build_decoder
from ouzel.runtimes.onnxruntime.decoder import OrtDecoder
from ouzel.runtimes.onnxruntime.export_decoder import export_decoder

TURNS = 9


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def _snr(found, wanted) -> float:
    noise = np.sum((found.astype(np.float64) - wanted) ** 2)
    return float(10 * np.log10(np.sum(wanted.astype(np.float64) ** 2) / noise))


def measure_speed(decoder: OrtDecoder, chunks, groups: int, size: int) -> None:
    rng = np.random.default_rng(0)
    state, times = decoder.start(), {n: [] for n in chunks}
    for _ in range(TURNS + 1):
        for n in chunks:
            codes = rng.integers(0, size, (n, groups))
            start = time.process_time()
            decoder.decode(state, codes)
            times[n].append((time.process_time() - start) * 1000 / n)
    for n in chunks:
        turns = times[n][1:]
        print(f"chunk {n:3}: {np.median(turns):6.1f} CPU ms a frame (median of {TURNS}; fastest {min(turns):.1f})")
    print(f"resident {_resident_mb():.0f} MB")


def measure_parity(decoder: OrtDecoder, chunks, full: Path) -> None:
    with np.load(full) as arrays:
        codes, wanted = arrays["codes"], arrays["samples"]
    for n in chunks:
        state = decoder.start()
        samples = np.concatenate([decoder.decode(state, codes[i : i + n]) for i in range(0, len(codes), n)])
        difference = np.abs(samples - wanted).max()
        print(f"chunk {n:3}: SNR {_snr(samples, wanted):.1f} dB, largest difference {difference:.1e}, {len(codes)} frames")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--official", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--chunks", default="1,4,8,25")
    options = parser.parse_args()
    chunks = [int(n) for n in options.chunks.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        network = build_decoder(Checkpoint(options.checkpoint))
        spec = network.spec
        files = export_decoder(network, Path(folder))
        decoder = OrtDecoder(Path(folder) / files[0], spec, threads=options.threads)
    measure_speed(decoder, chunks, spec["groups"], spec["codebook_size"])
    if options.official:
        measure_parity(decoder, chunks, options.official)


if __name__ == "__main__":
    main()
