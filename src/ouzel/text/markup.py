"""Plain text out of Markdown, HTML and emoji, for text that was written to be looked at, such as a language model's answer."""

from __future__ import annotations

import re

from .emoji import strip_emoji
from .inline import strip_inline
from .normalise import drop_control

_LINE_BREAK = re.compile(r"\r\n?")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[^`]*$")
_QUOTE = re.compile(r"[ \t]*(?:>(?![\d=])[ \t]?)+")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]+")
_ITEM = re.compile(r"[ \t]*(?:[-*•◦▪‣●○■]|\+(?![ \t]*\d))[ \t]+(?:\[[ xX]\][ \t]+)?")
_DEFINITION = re.compile(r"[ \t]*\[([^\[\]^]{1,200})\]:[ \t]+<?(?:https?:|ftp:|mailto:|/|#|\.)\S*[ \t]*(?:[\"'(].*)?$")
_FOOTNOTE = re.compile(r"[ \t]*\[\^[^\[\]]{1,200}\]:[ \t]+")
_CELL_EDGE = re.compile(r"(?<!\\)\|")
_RULE = frozenset("-=*_~#|:+>` \t")
_DELIMITER = frozenset("|:- \t")


def strip_markup(text: str) -> str:
    """Remove what is there for the eye: Markdown marks, HTML tags and comments, emoji, control characters. Words stay.

    Links become their text and images their description, table rows their cells with commas; the content of code is kept; rules
    and fences vanish with their lines. Text without markup comes back unchanged. One pass a step: the time is linear.
    """
    lines = _drop_comments(_LINE_BREAK.sub("\n", drop_control(text))).split("\n")
    labels = {m.group(1).lower() for m in map(_DEFINITION.match, lines) if m}
    fences, rows = _fences(lines), _table_rows(lines)
    out: list[str] = []
    paragraph: list[str] = []

    def end_paragraph() -> None:
        if paragraph:
            out.append(strip_inline("\n".join(paragraph), labels))
            paragraph.clear()

    for number, line in enumerate(lines):
        if number in fences:
            end_paragraph()
            if not fences[number]:
                out.append(line)
            continue
        bare, starts = _strip_block(line, row=number in rows)
        if starts or not bare:
            end_paragraph()
        if bare:
            paragraph.append(bare)
        elif bare is not None:
            out.append(bare)
    end_paragraph()
    return strip_emoji("\n".join(out))


def _strip_block(line: str, *, row: bool) -> tuple[str | None, bool]:
    """The line without its block marks, None if it is nothing else; and whether it begins a paragraph of its own."""
    quote = _QUOTE.match(line)
    bare = line[quote.end() :] if quote else line
    body = bare.strip()
    if (len(body) >= 3 and _RULE.issuperset(body) and len(body.replace(" ", "")) >= 3) or _DEFINITION.match(bare):
        return None, True
    if row or (body.startswith("| ") and body.endswith(" |") and len(body) > 3):
        cells = [cell.strip() for cell in _CELL_EDGE.split(body)]
        return ", ".join(cell for cell in cells if cell), True
    if found := _HEADING.match(bare):
        title = bare[found.end() :].rstrip()
        plain = title.rstrip("#")
        return (plain.rstrip() if plain != title and (not plain or plain[-1].isspace()) else title), True
    if found := _ITEM.match(bare) or _FOOTNOTE.match(bare):
        return bare[found.end() :], True
    return bare, False


def _fences(lines: list[str]) -> dict[int, bool]:
    """Lines of fenced code: True for the fence itself, which goes, False for content, which stays as it is.

    A fence without its partner (a text cut in the middle) goes as well, but leaves the text after it ordinary.
    """
    out: dict[int, bool] = {}
    hopeless: dict[str, int] = {}  # fence character -> shortest length known to have no partner further down
    number = 0
    while number < len(lines):
        found = _FENCE.match(lines[number])
        if found:
            out[number] = True
            mark, size = found.group(1)[0], len(found.group(1))
            if size < hopeless.get(mark, size + 1):
                for end in range(number + 1, len(lines)):
                    closing = lines[end].strip()
                    if len(closing) >= size and closing == mark * len(closing):
                        out.update(dict.fromkeys(range(number + 1, end), False))
                        out[end] = True
                        number = end
                        break
                else:
                    hopeless[mark] = size
        number += 1
    return out


def _table_rows(lines: list[str]) -> set[int]:
    """Numbers of the lines that are rows of a table: above and below a line of dashes and bars."""
    out: set[int] = set()
    number = 1
    while number < len(lines):
        line = lines[number].strip()
        if "|" in line and "-" in line and _DELIMITER.issuperset(line) and "|" in lines[number - 1]:
            out.add(number - 1)
            while number + 1 < len(lines) and "|" in lines[number + 1]:
                number += 1
                out.add(number)
        number += 1
    return out


def _drop_comments(text: str) -> str:
    """Remove <!-- ... -->; an unclosed one is ordinary text."""
    out: list[str] = []
    last = 0
    while (start := text.find("<!--", last)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        out.append(text[last:start])
        last = end + 3
    out.append(text[last:])
    return "".join(out)
