"""Benchmarks: CPU ms per frame and stage (`python -m ouzel.bench`) and the cancel soak (`python -m ouzel.bench.soak`)."""
