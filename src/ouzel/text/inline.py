"""Markdown and HTML inside a paragraph: code spans, links, tags, emphasis, entities. Each step is one linear pass."""

from __future__ import annotations

import html
import re
from collections.abc import Set

from .emphasis import strip_emphasis

_CODE_OR_ESCAPE = re.compile(r"\\[!-/:-@\[-`{-~]|`+")
_BRACKET = re.compile(r"!?\[|\]")
# (url "title"). Nothing in it may hold a square bracket, so attempts at different links never read the same characters.
_DESTINATION = re.compile(r"""\(\s*<?((?:[^\s()\[\]<>]|\([^\s()\[\]]*\))*)>?(?:\s+"[^"\[\]]*"|\s+'[^'\[\]]*')?\s*\)""")
_REFERENCE = re.compile(r"\[([^\[\]\n]{0,200})\]")
_ADDRESS = re.compile(
    r"""<((?:https?|ftp|mailto):[^\s<>]+|[^\s<>@]{1,64}@[^\s<>@]+)>|(?:(?:https?|ftp)://|www\.)[^\s<>"\x00]+""", re.IGNORECASE
)
_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9]*)(\s[^<>]*)?/?>")
_FOOTNOTE = re.compile(r"\^\d{1,4}")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")

_LINE_TAGS = """br p div li ul ol dl dt dd tr table hr h1 h2 h3 h4 h5 h6 blockquote pre section article header footer title"""
_TEXT_TAGS = """
    a abbr b big body button center cite code del details em figcaption figure font head html i img input ins kbd label main mark
    nav q s samp small span strike strong sub summary sup tbody tfoot thead tt u var video wbr
"""
_TAG_TEXT = dict.fromkeys(_LINE_TAGS.split(), "\n") | dict.fromkeys(_TEXT_TAGS.split(), "") | {"td": " ", "th": " "}


def strip_inline(text: str, labels: Set[str] = frozenset()) -> str:
    """Plain text of one paragraph without control characters.

    labels: lower-case link labels that the document defines; only those make [text][label] and [label] a link.
    """
    held = _Held()
    text = _hold_code(text, held)
    text = _links(text, labels)
    text = _ADDRESS.sub(held.address, text)
    text = _TAG.sub(_tag, text)
    text = strip_emphasis(text)
    text = _ENTITY.sub(lambda m: html.unescape(m.group()), text)
    return held.restore(text)


class _Held:
    """Spans that later steps must not look into, each replaced by a token of control characters, which the text has none of."""

    _DIGITS = str.maketrans("0123456789abcdef", "".join(map(chr, range(0x90, 0xA0))))
    _VALUES = str.maketrans("".join(map(chr, range(0x90, 0xA0))), "0123456789abcdef")
    _TOKEN = re.compile("\x00([\x90-\x9f]+)\x01")

    def __init__(self) -> None:
        self._spans: list[str] = []

    def hold(self, span: str) -> str:
        self._spans.append(span)
        return f"\x00{f'{len(self._spans) - 1:x}'.translate(self._DIGITS)}\x01"

    def address(self, found: re.Match[str]) -> str:
        """Keep a web or mail address as it is, without the angle brackets or the emphasis around it."""
        whole = found.group(1) or found.group()
        core = whole.rstrip("*_~")
        return self.hold(core) + whole[len(core) :]

    def restore(self, text: str) -> str:
        return self._TOKEN.sub(lambda m: self._spans[int(m.group(1).translate(self._VALUES), 16)], text)


def _hold_code(text: str, held: _Held) -> str:
    """Code spans lose their backticks and keep their content; escaped punctuation loses the backslash. Lone backticks go."""
    tokens = list(_CODE_OR_ESCAPE.finditer(text))
    same: dict[int, list[int]] = {}  # run length -> indexes of such runs, last first
    for index in range(len(tokens) - 1, -1, -1):
        if tokens[index].group()[0] == "`":
            same.setdefault(len(tokens[index].group()), []).append(index)
    out: list[str] = []
    last = index = 0
    while index < len(tokens):
        token = tokens[index]
        out.append(text[last : token.start()])
        last = token.end()
        if token.group()[0] == "\\":
            out.append(held.hold(token.group()[1]))
        else:
            stack = same[len(token.group())]
            while stack and stack[-1] <= index:
                stack.pop()
            if stack:
                index = stack.pop()
                out.append(held.hold(text[last : tokens[index].start()].strip()))
                last = tokens[index].end()
        index += 1
    out.append(text[last:])
    return "".join(out)


def _links(text: str, labels: Set[str]) -> str:
    """Links become their text, images their description, footnote marks nothing; other brackets stay."""
    out: list[str] = []
    opened: list[tuple[int, int]] = []  # (index in out, offset in text) of brackets not yet closed
    last = 0
    while found := _BRACKET.search(text, last):
        out.append(text[last : found.start()])
        last = found.end()
        if found.group() != "]":
            opened.append((len(out), last))
            out.append(found.group())
            continue
        if not opened:
            out.append("]")
            continue
        index, start = opened.pop()
        end = _target_end(text, start, found.start(), labels)
        if end:
            out[index] = ""
            last = end
        elif _FOOTNOTE.fullmatch(text, start, found.start()):
            del out[index:]
        else:
            out.append("]")
    out.append(text[last:])
    return "".join(out)


def _target_end(text: str, start: int, close: int, labels: Set[str]) -> int:
    """End of the link whose text is text[start:close], or 0 if the brackets are ordinary ones."""
    if found := _DESTINATION.match(text, close + 1):
        before = text[start - 2 : start - 1]
        indexing = before.isascii() and (before.isalnum() or before in ("]", ")", "_")) and not _looks_like_url(found.group(1))
        return 0 if before and indexing else found.end()
    if not labels or close - start > 200:
        return 0
    inner = text[start:close].lower()
    if found := _REFERENCE.match(text, close + 1):
        return found.end() if (found.group(1).lower() or inner) in labels else 0
    return close + 1 if inner in labels else 0


def _looks_like_url(target: str) -> bool:
    return any(c in target for c in "/:#.")


def _tag(found: re.Match[str]) -> str:
    """Known HTML tags go, those of blocks leave a line break; anything else in angle brackets is ordinary text."""
    name, attributes = found.group(1).lower(), (found.group(2) or "").strip(" /")
    if name not in _TAG_TEXT or (attributes and "=" not in attributes):
        return found.group()
    return _TAG_TEXT[name]
