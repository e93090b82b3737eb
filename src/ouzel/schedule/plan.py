"""When is a first chunk large enough? The arithmetic behind the `auto` schedule (contract 3.6, feasibility rule).

Let s = talker + decode cost of one frame, c = fixed cost of a decode call, m = safety margin, all ms; a frame plays for 80 ms.
The talker and the decoder run on two threads but share cores and memory bandwidth, so their times are added up as if they took
turns. That is the slow end: any overlap makes a chunk arrive earlier, and measured wall times already contain the contention.
With boundaries b_0 < b_1 < … (frames shipped after each chunk), n_k = b_k - b_{k-1}, and playback starting when chunk 0 arrives:

    arrival of chunk k        A_k = s·b_k + c·(k + 1)            (same origin for all)
    gap-free with margin      A_k - A_0 + m <= 80·b_{k-1}         for all k >= 1

With slack L_k = 80·b_{k-1} - (A_{k-1} - A_0) - m, the time left to make chunk k, the rule reads s·n_k + c <= L_k, and

    L_{k+1} = L_k + 80·n_k - (s·n_k + c).

Shipping as late as allowed (the largest n_k) is optimal: it can only raise every later slack. A chunk of n frames pays for itself
iff s·n + c <= 80·n, i.e. n >= n* = ceil(c / (80 - s)), which exists up to the chunk size C iff s·C + c <= 80·C. If n_1 >= n*
the slack never falls again and chunks grow towards C; if n_1 < n* it falls at every chunk and a gap follows. Hence, for an
utterance of any length, the smallest gap-free first chunk is

    b_0 = ceil((s·n* + c + m) / 80)          (at most n* + ceil(m / 80) frames)

If even C does not pay for itself the machine is slower than real time. With an expected length N the smallest b_0 is found by
walking the chunks up to N. Without one the fallback is C: no start is safe, so save decode calls and let the playback gate hold.
"""

from __future__ import annotations

import math

from ouzel.schedule.speed import SpeedModel

FRAME_MS = 80.0
# Sums of measured floats; a millionth of a ms decides nothing but rounding.
TOLERANCE_MS = 1e-6


def projected_rtf(speed: SpeedModel, chunk_frames: int) -> float:
    """Wall time / audio time of chunks of `chunk_frames`, for `audio.gate.Outlook`; above 1 no unbounded start is safe."""
    return speed.chunk_ms(chunk_frames) / (FRAME_MS * chunk_frames)


def smallest_sustained_chunk(speed: SpeedModel, chunk_frames: int) -> int | None:
    """n*: fewest frames that play at least as long as they take; None if not even `chunk_frames` do."""
    gain = FRAME_MS - speed.per_frame_ms
    if gain * chunk_frames + TOLERANCE_MS < speed.decode_call_ms:
        return None
    if speed.decode_call_ms <= TOLERANCE_MS:
        return 1
    return max(1, math.ceil((speed.decode_call_ms - TOLERANCE_MS) / gain))


def plan_sizes(speed: SpeedModel, chunk_frames: int, margin_ms: float, first: int, total: int) -> list[int] | None:
    """Latest-possible chunk sizes of a `total`-frame utterance behind a first chunk of `first`; None if they leave a gap."""
    sizes = [min(first, total)]
    shipped, slack = first, FRAME_MS * first - margin_ms
    while shipped < total:
        affordable = math.floor((slack - speed.decode_call_ms + TOLERANCE_MS) / speed.per_frame_ms)
        size = min(affordable, chunk_frames, total - shipped)
        if size < 1:
            return None
        slack += FRAME_MS * size - speed.chunk_ms(size)
        shipped += size
        sizes.append(size)
    return sizes


def first_chunk(speed: SpeedModel, chunk_frames: int, margin_ms: float, expected_frames: int | None = None) -> int:
    """b_0, the smallest first chunk without a later gap; `expected_frames` only matters on a machine slower than real time.

    There, without an expected length, the answer is `chunk_frames`, and no promise. With one it may exceed `chunk_frames`.
    """
    sustained = smallest_sustained_chunk(speed, chunk_frames)
    if sustained is not None:
        return max(1, math.ceil((speed.chunk_ms(sustained) + margin_ms - TOLERANCE_MS) / FRAME_MS))
    if expected_frames is None or expected_frames < 1:
        return chunk_frames
    low, high = 1, expected_frames  # a larger first chunk only adds slack, so the search may halve
    while low < high:
        middle = (low + high) // 2
        if plan_sizes(speed, chunk_frames, margin_ms, middle, expected_frames) is None:
            low = middle + 1
        else:
            high = middle
    return low
