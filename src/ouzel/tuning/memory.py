"""Resident memory of this process."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def rss_mb() -> tuple[float, float]:
    """(now, peak so far) in MB of 10^6 bytes; where the system does not say what is resident now, the peak stands for both."""
    import resource  # not on Windows

    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return peak, peak
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6, peak
