"""The gates of the embedded voice: each with its limit, what was measured, and whether that is enough."""

from __future__ import annotations

from collections.abc import Sequence

from .findings import Findings, of, percent, table
from .listening import Heard
from .sentences import SETS, SHORT
from .tally import astray, edges, margin, mean_mos, mean_pitch, rate, repeated, rtf, skipped

GOAL, FLOOR = 0.05, 0.10  # of words wrong in each set
MOS_LOSS = 0.4  # overall DNSMOS below the teacher's
PITCH_SHARE = 0.7  # of the teacher's pitch range
RTF, TTFA_MS, START_S, SIZE_MB = 0.15, 60.0, 1.5, 25.0
Row = tuple[str, str, Sequence[str], bool]


def gates(found: Findings) -> str:
    rows = [*_words(found), *_sound(found), *_lengths(found), *_cost(found)]
    empty = [""] * len(found.speakers)
    cells = ([name, limit, *[*values, *empty][: len(empty)], "yes" if met else "**no**"] for name, limit, values, met in rows)
    return table(["gate", "limit", *found.speakers, "met"], cells)


def _words(found: Findings) -> list[Row]:
    rows: list[Row] = []
    for name in SETS:
        rates = [rate(of(found.heard, name, speaker)) for speaker in found.speakers]
        if all(r.words for r in rates):
            limit = f"≤ {percent(FLOOR)} (goal {percent(GOAL)})"
            rows.append((f"WER, {name}", limit, [percent(r.rate) for r in rates], max(r.rate for r in rates) <= FLOOR))
    for title, count in (("words skipped", skipped), ("words repeated", repeated)):
        counts = [sum(map(count, of(found.heard, SETS, speaker))) for speaker in found.speakers]
        rows.append((f"{title}, three sets", "0", [str(n) for n in counts], not any(counts)))
    for index, edge in enumerate(("first", "last")):
        mine, theirs = ([_kept(side, speaker, index) for speaker in found.speakers] for side in (found.heard, found.teacher))
        if all(count for _, count in mine):
            cells = [f"{a} of {n} ({b})" for (a, n), (b, _) in zip(mine, theirs, strict=True)]
            met = all(a >= min(b or n, n) for (a, n), (b, _) in zip(mine, theirs, strict=True))
            rows.append((f"{edge} word heard, 1 to 5 words", "as many as (the teacher's)", cells, met))
    return rows


def _kept(heard: Sequence[Heard], speaker: str, edge: int) -> tuple[int, int]:
    """Short utterances whose first (0) or last (1) word was heard, of how many."""
    kept = [edges(h)[edge] for h in of(heard, SHORT, speaker)]
    return sum(kept), len(kept)


def _lengths(found: Findings) -> list[Row]:
    lost = [sum(astray(h) != "" for h in of(found.heard, (*SETS, SHORT), speaker)) for speaker in found.speakers]
    return [("utterances that ran away or broke off", "0", [str(n) for n in lost], not any(lost))]


def _sound(found: Findings) -> list[Row]:
    mine, theirs = ([of(side, SETS, speaker) for speaker in found.speakers] for side in (found.heard, found.teacher))
    if not all(mine) or not all(theirs):
        return []
    losses = [mean_mos(b)[2] - mean_mos(a)[2] for a, b in zip(mine, theirs, strict=True)]
    shares = [mean_pitch(a)[2] / max(mean_pitch(b)[2], 1e-9) for a, b in zip(mine, theirs, strict=True)]
    tell = margin([h for heard in mine for h in heard])
    apart = [f"{percent(tell.right)}, margin {tell.margin:.2f}"]
    return [
        ("DNSMOS below the teacher", f"≤ {MOS_LOSS}", [f"{loss:.2f}" for loss in losses], max(losses) <= MOS_LOSS),
        ("speakers told apart", "all", apart, tell.right == 1.0),
        (
            "pitch range beside the teacher's",
            f"≥ {PITCH_SHARE}",
            [f"{share:.2f}" for share in shares],
            min(shares) >= PITCH_SHARE,
        ),
    ]


def _cost(found: Findings) -> list[Row]:
    own = rtf(found.heard)
    rows: list[Row] = [("RTF, CPU of one core", f"≤ {RTF}", [f"{own:.3f}"], own <= RTF)]
    if found.first:
        warm, cold = found.first.warm_cpu * 1000, found.first.cold_wall
        rows.append(("first audio when warm, CPU", f"≤ {TTFA_MS:.0f} ms", [f"{warm:.0f} ms"], warm <= TTFA_MS))
        rows.append(("first audio after process start", f"≤ {START_S} s", [f"{cold:.2f} s"], cold <= START_S))
    size = found.size / 1e6
    return [*rows, ("size", f"≤ {SIZE_MB:.0f} MB", [f"{size:.1f} MB"], size <= SIZE_MB)]
