"""Web addresses, e-mail addresses and file names, read the way people say them."""

from __future__ import annotations

import re

from .spelling import spelled

_SPELLED = frozenset(
    """
uk io ai de fr eu tv ca jp cn ch ru nl fm gg ly au js py ts md css csv html htm php pdf xml mp jpg jpeg png svg txt exe dll docx
doc xlsx xls pptx ppt cpp rs sh yml www http https ftp edu api faq usa
""".split()
)
_TOP = (
    "com|org|net|edu|gov|mil|int|info|biz|io|ai|app|dev|co|uk|de|fr|eu|ca|au|jp|cn|ch|ru|nl|tv|fm|gg|ly|xyz|online|shop|blog|cloud"
    "|js|py|ts|md|css|csv|html?|php|pdf|xml|json|ya?ml|txt|exe|dll|docx?|xlsx?|pptx?|cpp|jpe?g|png|gif|svg|mp3|mp4|wav|zip|toml|ini|log"
)
_EMAIL = re.compile(
    r"(?<![\w.+%@-])(?:mailto:)?([A-Za-z0-9][\w.+%-]{0,63}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8})(?![\w@])", re.ASCII
)
_URL = re.compile(r"(?<![\w@./-])(?:(?:https?|ftp)://|(?=www\.))([^\s<>\"]++)", re.IGNORECASE)
_DOMAIN = re.compile(
    rf"(?<![\w@./-])((?:[A-Za-z0-9](?:[\w-]{{0,62}})\.){{1,6}}(?:{_TOP})(?::\d{{1,5}})?(?:/[^\s<>\"]*+)?)(?![\w-])", re.ASCII
)
_DOT_NAME = re.compile(r"(?<![\w.])\.(?=NET\b|(?:[a-z]{2,6})\b)")
_TRAILING = ".,;:!?)]}'\"*_"
_RUN = re.compile(r"[A-Za-z]+|\d+|.", re.DOTALL)
_SYMBOLS = {
    ".": "dot", "/": "slash", "-": "dash", "_": "underscore", ":": "colon", "?": "question mark", "=": "equals", "&": "and",
    "#": "hash", "%": "percent", "+": "plus", "~": "tilde", "@": "at", ",": "comma", "!": "exclamation mark",
}  # fmt: skip


def speak_addresses(text: str) -> str:
    if "@" in text:
        text = _EMAIL.sub(lambda m: _say(m[1]), text)
    if "://" in text or "www." in text.lower():
        text = _URL.sub(_trimmed, text)
    text = _DOMAIN.sub(_trimmed, text)
    return _DOT_NAME.sub(" dot ", text)


def _trimmed(found: re.Match[str]) -> str:
    """Marks at the end belong to the sentence."""
    address = found[1].rstrip(_TRAILING)
    rest = found[1][len(address) :]
    return _say(address.rstrip("/")) + rest


def _say(address: str) -> str:
    words = []
    for run in _RUN.findall(address):
        if run.isalpha() and run.isascii():
            words.append(_letters(run))
        elif run.isdigit():
            words.append(_digits(run))
        elif run in _SYMBOLS:
            words.append(_SYMBOLS[run])
    return " ".join(words)


def _letters(run: str) -> str:
    if run.lower() in _SPELLED or len(run) == 1:
        return spelled(run)
    return run


def _digits(run: str) -> str:
    from .numbers import code  # with the number words, which texts without figures do without

    return code(run)
