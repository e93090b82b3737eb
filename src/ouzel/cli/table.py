"""Plain aligned columns."""

from __future__ import annotations

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]], header: Sequence[str] = ()) -> str:
    """Rows of texts as lines of left-aligned columns, two spaces apart; "" for no rows."""
    lines = [list(header), *map(list, rows)] if header else [list(r) for r in rows]
    if not rows:
        return ""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def size(count: int) -> str:
    """Bytes in the unit that reads best."""
    value = float(count)
    for unit in ("B", "KB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.2f} GB"
