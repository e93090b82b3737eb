"""Emphasis marks of Markdown: * _ ~~ around words, told apart from products, snake_case and footnote stars."""

from __future__ import annotations

import re

_RUN = re.compile(r"\*+|_+|~~+")


def strip_emphasis(text: str) -> str:
    """Remove paired emphasis marks, and lone double ones as a segment cut out of a longer text leaves them.

    Marks between spaces or inside an ASCII word never count: 2 * 3, 2*3*4, 2**8, snake_case stay. Each mark is looked at a fixed
    number of times, so the time is linear.
    """
    runs = list(_RUN.finditer(text))
    left = [len(run.group()) for run in runs]
    opened: dict[str, list[int]] = {"*": [], "_": [], "~": []}
    for index, run in enumerate(runs):
        mark, before, after = run.group()[0], text[run.start() - 1 : run.start()], text[run.end() : run.end() + 1]
        stack = opened[mark]
        if _closes(mark, before, after):
            while left[index] and stack:
                taken = min(left[index], left[stack[-1]])
                left[index] -= taken
                left[stack[-1]] -= taken
                if not left[stack[-1]]:
                    stack.pop()
        if left[index] and _opens(mark, before, after):
            stack.append(index)
    out: list[str] = []
    last = 0
    for index, run in enumerate(runs):
        out.append(text[last : run.start()])
        last = run.end()
        if left[index] and not _stray(text, run, left[index]):
            out.append(run.group()[: left[index]])
    out.append(text[last:])
    return "".join(out)


def _blank(c: str) -> bool:
    return not c or c.isspace()


def _opens(mark: str, before: str, after: str) -> bool:
    in_word = before.isalnum() and (mark == "_" or before.isascii())
    return not _blank(after) and not in_word


def _closes(mark: str, before: str, after: str) -> bool:
    in_word = after.isalnum() and (mark == "_" or (after.isascii() and before.isascii() and before.isalnum() and after.isdigit()))
    return not _blank(before) and not in_word


def _stray(text: str, run: re.Match[str], left: int) -> bool:
    """A mark without its partner that is still markup, because ordinary writing has no such thing."""
    mark, before, after = run.group()[0], text[run.start() - 1 : run.start()], text[run.end() : run.end() + 1]
    if mark == "_":
        return False
    if left >= 2:
        return _blank(before) != _blank(after) and not (before.isdigit() or after.isdigit())
    if mark == "*" and before in ("", "\n"):
        return after.isalpha()
    return mark == "*" and after in ("", "\n") and not _blank(before) and not before.isalnum()
